# spec 3, S7: static and position-independent programs, programs without libc, and Go's, which has no execve that can be guarded.
. "$(dirname "$0")/lib.sh"
source='#include "posix.h"
static volatile long n;
__attribute__((noipa)) static void spin(void) { for (long i = 0; i < 100000000; i++) n++; }
int main() { spin(); struct sigaction a; CHECK(!sigaction(SIGTRAP, NULL, &a) && a.sa_handler == SIG_DFL); if (!fork()) execl("/bin/echo", "echo", "child", NULL); int status; wait(&status); return status; }'
for flags in -no-pie -pie -static -static-pie; do
  compile kind.c $flags <<<"$source"
  RATE=5000 sampled "$T/kind"
  seen spin main
done
bare nothing <<'S'
  ten_times
  mov $20000000, %ecx
2: dec %ecx
  jnz 2b
  again
S
RATE=5000 sampled "$T/nothing"
seen _start
need go
compile work.go <<'G'
package main
import ("fmt"; "os/exec")
//go:noinline
func spin(n int) int { x := 1; for i := 0; i < n; i++ { x = x*31 + i }; return x }
func main() {
	done := make(chan int)
	for i := 0; i < 4; i++ { go func() { done <- spin(100000000) }() }
	sum := 0
	for i := 0; i < 4; i++ { sum += <-done }
	out, err := exec.Command("/bin/echo", "child").Output()
	fmt.Println(sum, string(out), err)
}
G
RATE=2000 sampled "$T/work"
seen main.spin
