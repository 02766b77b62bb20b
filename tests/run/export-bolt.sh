# The counts of blocks as fdata, which llvm-bolt takes: the program that it lays out anew does the same.
. "$(dirname "$0")/lib.sh"
need llvm-bolt-19
compile work.c -g -Wl,-q -fno-inline <<'C'
#include <stdio.h>
int classify(int n) {
  if (n % 97 == 0) { puts("rare"); return 3; }
  return n % 3;
}
int main(void) {
  int s = 0;
  for (int i = 1; i < 5000; i++) s += classify(i);
  printf("%d\n", s);
}
C
"$WEIR" profile -q -o "$T/w.weir" -- "$T/work" >"$T/expected" || fail "the program"
"$WEIR" export "$T/w.weir" --format bolt -o "$T/w.fdata" 2>"$T/err" || fail "$(<"$T/err")"
grep -q '^1 classify 0 4999$' "$T/w.fdata" || fail "$(<"$T/w.fdata")"
llvm-bolt-19 "$T/work" -data "$T/w.fdata" -reorder-blocks=ext-tsp -o "$T/bolted" >"$T/log" 2>&1 || fail "$(<"$T/log")"
grep -Eq '[1-9][0-9]* out of [0-9]+ functions in the binary .* have non-empty execution profile' "$T/log" || fail "no profile was used: $(<"$T/log")"
grep -q 'functions with.*invalid' "$T/log" && fail "$(<"$T/log")"
"$T/bolted" >"$T/got" && diff "$T/expected" "$T/got" || fail "it behaves otherwise"

# Local functions have the names that BOLT gives them, by their addresses: here those of b.c come first, though a.c does in the symbol table.
cat >"$T/a.c" <<'C'
int other(int);
__attribute__((noinline)) static int pick(int n) { return n % 3 ? n * 3 : n + 1; }
__attribute__((cold, noinline)) int unlikely(int n) { return n + 5; }
int main(void) { volatile int s = 0; for (int i = 0; i < 1000; i++) s += pick(i) + other(i); return 0; }
C
cat >"$T/b.c" <<'C'
__attribute__((noinline, cold)) static int pick(int n) { if (n % 7 == 0) return n; return n * 5; }
int other(int n) { return n % 10 == 0 ? pick(n) : 1; }
C
gcc -O2 -g -Wl,--emit-relocs "$T/a.c" "$T/b.c" -o "$T/two"
ln -s two "$T/link"; cd "$T"
bolted() {  # bolted PROGRAM COMMAND…: in $T/fdata are blocks of the program, when that was run
  local program=$1; shift
  "$WEIR" profile -q -o w.weir -- "$@" >/dev/null || fail "$*"
  "$WEIR" export w.weir --format bolt -o fdata 2>err || fail "$(<err)"
  grep -q "blocks of $(realpath "$program"): " err || fail "another program than $program: $(<err)"
}
for command in ./two ./link "$T/link" "env ./link"; do
  bolted two $command
  names=$(awk '$3 == "0" { print $2, $4 }' fdata | grep pick | sort)
  [[ $names == "pick/1 100"$'\n'"pick/2 1000" ]] || fail "$command: $(<fdata)"
done
llvm-bolt-19 two -data fdata -o two.bolt -print-cfg -print-only='pick.*' >log 2>&1 || fail "$(<log)"
# Each has its counts (in units of a thousandth), and is profiled beside main and other.
counts=$(awk '/All names/ { name = $4 } /Exec Count  :/ { print name, $4 }' log)
[[ $counts == "pick/1 100000"$'\n'"pick/2 1000000" ]] || fail "BOLT has $counts: $(<log)"
profiled() { sed -n 's/^BOLT-INFO: \([0-9]*\) out of .* have non-empty execution profile.*/\1/p' "$1"; }
sed 's:/[0-9]* : :' fdata >plain
llvm-bolt-19 two -data plain -o two.plain >log-plain 2>&1 || fail "$(<log-plain)"
(($(profiled log) >= $(profiled log-plain) + 2)) || fail "$(profiled log) functions are profiled, $(profiled log-plain) with plain names"
./two.bolt || fail "it behaves otherwise"
# A shell that is stripped has no names for BOLT, and what it ran is not meant, unless that is selected.
"$WEIR" profile -q -o w.weir -- sh -c './two; true' || fail "sh"
expect_fail 125 "$(realpath /bin/sh) has no symbols" "$WEIR" export "$T/w.weir" --format bolt -o "$T/fdata"
child=$(sqlite3 w.weir "SELECT pid FROM process JOIN process_word w ON w.process = process.id WHERE w.text = './two'")
"$WEIR" export w.weir --process "$child" --format bolt -o fdata 2>err && grep -q "blocks of $T/two: " err || fail "--process: $(<err)"
# The program is another now: that is said.
gcc -O1 -Wl,--emit-relocs a.c b.c -o two
bolted two ./two; gcc -O3 -Wl,--emit-relocs a.c b.c -o two
"$WEIR" export w.weir --format bolt -o fdata 2>err && grep -q 'two: is not what was profiled' err || fail "$(<err)"
rm two; "$WEIR" export w.weir --format bolt -o fdata 2>err && grep -q 'two: is not there any more' err || fail "$(<err)"
