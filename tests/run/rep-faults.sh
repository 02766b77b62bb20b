# Rep instructions that fault in the middle or are interrupted, and go on.
. "$(dirname "$0")/lib.sh"
compile faults.c <<'C'
#include "posix.h"
static char *area, *source; static long faults; static volatile long ticks; extern char at_movs[]; enum { SIZE = 64 << 12 };
static void map(int number, siginfo_t *info, void *context) {
  greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
  char *page = (char *)((long)info->si_addr & -4096);
  CHECK(r[REG_RIP] == (long)at_movs && r[REG_RDI] - (long)area == SIZE - r[REG_RCX] && r[REG_RSI] - (long)source == SIZE - r[REG_RCX]);
  if (faults % 8 == 0) printf("%ld left, fault at %ld\n", r[REG_RCX], (char *)info->si_addr - area);
  mprotect(page, 4096, PROT_READ | PROT_WRITE), faults++;
}
static void tick(int number, siginfo_t *info, void *context) { ticks++; }
void copy(char *, const char *, long);
asm("copy: mov %rdx, %rcx; at_movs: rep movsb; ret");
int main() {
  on_signal(SIGSEGV, map, 0), on_signal(SIGALRM, tick, 0);
  area = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), source = malloc(SIZE);
  for (int i = 0; i < SIZE; i++) source[i] = i * 31 >> 4;
  copy(area, source, SIZE);
  printf("%ld faults, equal %d\n", faults, !memcmp(area, source, SIZE));
  struct itimerval often = {{0, 300}, {0, 300}};
  setitimer(ITIMER_REAL, &often, NULL);
  char *big = malloc(32 << 20);
  for (unsigned char c = 0; ticks < 100; c++) {
    char *end = big; long n = 32 << 20;
    asm volatile("rep stosb" : "+D"(end), "+c"(n) : "a"(c) : "memory");
    CHECK(end == big + (32 << 20) && n == 0 && big[0] == (char)c && !memcmp(big, big + 1, (32 << 20) - 1));
  }
}
C
same "$T/faults"
