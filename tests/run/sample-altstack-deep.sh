# Samples that take longer than their period, with an alternate stack: a signal must not find the handler of the one before there.
. "$(dirname "$0")/lib.sh"
compile deep.c <<'C'
#include "posix.h"
static volatile long n;
__attribute__((noipa)) long descend(int depth) {
  volatile char room[40];
  room[0] = 1;
  if (depth) return descend(depth - 1) + room[0];
  for (int i = 0; i < 20000; i++) n++;
  return 0;
}
int main() {
  stack_t own = {.ss_sp = malloc(65536), .ss_size = 65536};
  sigaltstack(&own, NULL);
  long sum = 0;
  for (int i = 0; i < 2000; i++) sum += descend(20000 + i % 7);
  printf("%ld\n", sum);
}
C
RATE=10000 sampled "$T/deep"
