# A SIGSEGV handler that maps the page, and the access is done again.
. "$(dirname "$0")/lib.sh"
compile fault.c <<'C'
#include "posix.h"
static char *area; static volatile int faults; enum { PAGES = 2000 };
static void map(int number, siginfo_t *info, void *context) {
  char *page = (char *)((uintptr_t)info->si_addr & -4096);
  CHECK(page >= area && page < area + PAGES * 4096L && info->si_code == SEGV_ACCERR);
  CHECK(mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0);
  faults++;
}
int main() {
  area = mmap(NULL, PAGES * 4096L, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  on_signal(SIGSEGV, map, 0);
  uint64_t sum = 0;
  for (int i = 0; i < PAGES; i++) {
    char *p = area + i * 4096L + i % 4000;
    switch (i % 5) {
      case 0: *p = i; break;
      case 1: *(uint64_t *)p += i; break;
      case 2: memset(p, i, 50); break;
      case 3: asm volatile("lock xaddq %0, (%1)" : : "r"(7L), "r"(p) : "memory", "cc"); break;
      case 4: { double d = i; *(double *)p = d * 3; break; }
    }
    sum = mix(sum, *(uint64_t *)p);
  }
  printf("%d faults, %lx\n", faults, sum);
}
C
same "$T/fault"
