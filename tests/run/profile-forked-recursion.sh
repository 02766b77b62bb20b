# Calls that a forked process began with are in its profile, also those inside another call of the same function, which have no total.
. "$(dirname "$0")/lib.sh"
compile forked.c <<'C'
#include "posix.h"
#include <setjmp.h>
jmp_buf out;
__attribute__((noinline, noipa)) void a(int), b(int);
void a(int n) {
  if (n) b(n - 1);
  else if (fork()) wait(NULL);
  else longjmp(out, 1);
  asm volatile("");
}
void b(int n) { a(n); asm volatile(""); }
int main() {
  if (!setjmp(out)) a(1);
  return 0;
}
C
profile "$T/forked"
[[ $(ask "SELECT sum(c.calls) || ' of ' || count(*) FROM call_count c JOIN site s ON s.id = c.site JOIN function_total b ON b.id = s.function
  JOIN function_total a ON a.id = c.callee WHERE a.name = 'a' AND b.name = 'b'") == "1 of 2" ]] || fail "the child's call of a by b"
