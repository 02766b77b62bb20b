# A path through blocks that a handler leaves for good, half-way, makes counts of blocks uncertain. The clock at the end is what it was all the same: a
# call that is under way then took what it took.
. "$(dirname "$0")/lib.sh"
compile left.c -O1 <<'C'
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>
static sigjmp_buf out;
static void on_fault(int s) { siglongjmp(out, 1); }
__attribute__((noinline)) long half(int at, int n, volatile long *p) {
  long x = at;
  if (at == 0) x += p[x & 7];
  if (at == 1) x += p[x & 7];
  x = x * 8 + n;
  if (at == 2) x += p[x & 7];
  if (at == 3) x += p[x & 7];
  if (at == 4) x += p[x & 7];
  return x;
}
int main() {
  signal(SIGSEGV, on_fault);
  for (volatile int i = 0; i < 1000; i++)
    if (!sigsetjmp(out, 1)) half(i % 5, i % 7, 0);
  _exit(0);
}
C
same "$T/left"
profile "$T/left"
answers "SELECT calls, total = self, self_max = self FROM function_total WHERE name = '_exit'" <<<'1|1|1'
