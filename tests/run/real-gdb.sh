# Gdb -batch: breakpoints, backtraces, stepping and values of a small program.
. "$(dirname "$0")/lib.sh"
need gdb
compile target.c -g -O0 <<'C'
#include <stdio.h>
static int inner(int n) {
  int twice = n * 2;
  return twice + 1;
}
int main() {
  int sum = 0;
  for (int i = 0; i < 3; i++) sum += inner(i);
  printf("%d\n", sum);
  return 4;
}
C
cat >"$T/commands" <<'G'
set debuginfod enabled off
break inner
run
backtrace
next
print twice
delete
finish
next
next
info locals
stepi
continue
G
same gdb -nx -q -batch -ex 'info line inner' -ex 'disassemble /s inner' "$T/target"
same_out bash -c "gdb -nx -q -batch -x $T/commands $T/target | sed -E 's/process [0-9]+|0x[0-9a-f]+/N/g'"
