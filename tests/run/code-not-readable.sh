# Code in memory that may be executed, or written, and not be read.
. "$(dirname "$0")/lib.sh"
compile wx.c <<'C'
#include "posix.h"
#include <setjmp.h>
static sigjmp_buf out;
static void fault(int s) { siglongjmp(out, s); }
int main() {
  unsigned char code[] = {0xb8, 42, 0, 0, 0, 0xc3};
  int file = memfd_create("code", 0); ftruncate(file, 4096);
  unsigned char *p = mmap(0, 4096, PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0),
      *second = mmap(0, 4096, PROT_EXEC, MAP_SHARED, file, 0);
  for (int k = 0; k < 3; k++) {
    code[1] = 42 + k, memcpy(p, code, 6), memcpy(shared, code, 6);
    printf("%d %d", ((int (*)(void))p)(), ((int (*)(void))second)());
    mprotect(p, 4096, PROT_EXEC), printf(" %d", ((int (*)(void))p)()), mprotect(p, 4096, PROT_WRITE | PROT_EXEC), printf(" %d\n", ((int (*)(void))p)());
  }
  mprotect(p, 4096, PROT_NONE), signal(SIGSEGV, fault);
  int s = sigsetjmp(out, 1); if (!s) ((int (*)(void))p)();
  printf("%d\n", s);
}
C
same "$T/wx"
