# Code at the very end of a page before nothing: its last instruction runs, running off it faults.
. "$(dirname "$0")/lib.sh"
compile edge.c <<'C'
#include "posix.h"
static sigjmp_buf back; static char *area;
static void handler(int number, siginfo_t *info, void *context) {
  greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
  printf("signal %d, rip at %lld, si_addr at %ld, rax %lld\n", number, r[REG_RIP] - (long)area, (char *)info->si_addr - area, r[REG_RAX]);
  siglongjmp(back, 1);
}
int main() {
  on_signal(SIGSEGV, handler, 0), on_signal(SIGILL, handler, 0);
  static const char codes[][12] = {"\xb8\x07\0\0\0\xc3", "\xb8\x08\0\0\0", "\xb8\x09\0\0\0\x48\xb8\x01\x02", "\xb8\x0a\0\0\0\xeb\x00", "\xb8\x0b\0\0\0\x0f\x0b", "\xb8\x0c\0\0\0\xe8\0\0\0\0"};
  static const int sizes[] = {6, 5, 9, 7, 7, 10};
  for (int i = 0; i < 6; i++) {
    area = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(area + 4096 - sizes[i], codes[i], sizes[i]);
    mprotect(area, 4096, PROT_READ | PROT_EXEC), munmap(area + 4096, 4096);
    if (!sigsetjmp(back, 1)) printf("returned %d\n", ((int (*)(void))(area + 4096 - sizes[i]))());
  }
}
C
same "$T/edge"
