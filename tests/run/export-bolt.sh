# issue 6, 4: the counts of blocks as fdata, which llvm-bolt takes: the program that it lays out anew does the same.
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
