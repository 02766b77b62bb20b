# A program that takes all memory around its code leaves no room for a code cache there (GCL, whose heap begins behind its program,
# and so maxima): its code is cached far away, where operands relative to rip cannot be copied.
. "$(dirname "$0")/lib.sh"
compile alone.c -O1 -static -no-pie -Wl,-Ttext-segment=0x20000 -Wl,-z,max-page-size=4096 <<'C'
#include "posix.h"
volatile double weights[4] = {1.5, 2.5, 3.5, 4.5};
volatile long cells[4] = {3, 5, 7, 11};
static long one(long x) { return x + cells[1]; }
static long two(long x) { return x * cells[2]; }
long (*volatile functions[2])(long) = {one, two};
__attribute__((noinline)) static long step(long x) {
  switch (x % 6) {
    case 0: return functions[0](x);
    case 1: return functions[1](x);
    case 2: cells[3]++; return x + cells[3];
    case 3: return (long)(x * weights[2]);
    case 4: __asm__ volatile("pushq cells(%%rip); popq cells+24(%%rip)" ::: "memory"); return x + cells[3];
    default: return x ^ (long)&cells[0];
  }
}
static void count(int n) { cells[0] += n; }
int main() {
  extern char end;
  long taken = 0;
  for (long at = (long)&end + 0xfffff & ~0xfffffL; at < 0x100000000; at += 0x100000)
    taken += mmap((void *)at, 0x100000, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) == (void *)at;
  printf("%d\n", taken > 4000);
  signal(SIGUSR1, count);
  unsigned long sum = 1;
  for (int i = 0; i < 20000; i++) {
    sum = (unsigned long)step(sum % 100000 + i);
    if (i % 5000 == 0) raise(SIGUSR1);
  }
  printf("%lu %ld %ld\n", sum, cells[0], cells[3]);
  pid_t child = fork();
  if (!child) _exit((int)(step(7) & 63));
  int status;
  waitpid(child, &status, 0);
  printf("%d\n", WEXITSTATUS(status));
  return 0;
}
C
same "$T/alone"
