# Longjmp out of deep calls, in loops, back and forth; setjmp that returns often.
. "$(dirname "$0")/lib.sh"
compile jumps.c <<'C'
#include "posix.h"
static jmp_buf back, buffers[10];
__attribute__((noinline)) static int deep(int n, int value) {
  volatile char room[64]; room[n % 64] = 1;
  if (n == 0) longjmp(back, value);
  return deep(n - 1, value) + room[0];
}
int main() {
  volatile uint64_t sum = 0; volatile int i;
  for (i = 1; i < 100000; i++) {
    int value = setjmp(back);
    if (value == 0) deep(i % 50, i); else sum = mix(sum, value);
  }
  printf("%lx\n", (long)sum);
  volatile int times = 0;
  if (setjmp(buffers[0]) < 1000) { times++; longjmp(buffers[0], times); }
  printf("%d times, zero becomes %d\n", times, ({ int r = setjmp(back); if (!r) longjmp(back, 0); r; }));
  for (volatile int level = 0; level < 10; level++) if (setjmp(buffers[level])) printf("level %d\n", level);
  static volatile int left = 9;
  if (left >= 0) { int n = left--; _longjmp(buffers[9], 1); }
}
C
same "$T/jumps"
build "$T/jumps.c" "$T/jumps" -O2 -D_FORTIFY_SOURCE=2
same "$T/jumps"
