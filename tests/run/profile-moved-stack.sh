# Go copies a stack that is too small to another place, while calls on it are under way: their frames move with it, and all of them return.
. "$(dirname "$0")/lib.sh"
need go
compile moved.go <<'C'
package main
import "runtime"
func init() { runtime.LockOSThread() }
func deep(n int) int { var room [100]int; room[n%100] = n; if n == 0 { return 0 }; return deep(n-1) + room[n%100] }
func main() { if deep(100000) != 5000050000 { panic("wrong") } }
C
export GOGC=off
profile "$T/moved"
[[ $(ask "SELECT calls FROM function_total WHERE name = 'main.deep'") == 100001 ]] || fail "calls"
[[ $(ask "SELECT (SELECT total FROM function_total WHERE name = 'main.deep') BETWEEN 0.9 * total AND total FROM function_total WHERE name = 'main.main'") == 1 ]] ||
  fail "$(ask "SELECT name, total FROM function_total WHERE name LIKE 'main.%'")"
# (Goroutines of the runtime's own may go on in another thread, whose first return then finds no frame.)
[[ $(ask "SELECT count(*) FROM process_word WHERE kind = 'note' AND text LIKE '%,___ returns went%'") == 0 ]] || fail "$(ask "SELECT text FROM process_word WHERE kind = 'note'")"
