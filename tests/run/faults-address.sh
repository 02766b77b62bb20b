# Si_addr, si_code and the context of faults on data and on code: missing, protected, not executable, beyond a file.
. "$(dirname "$0")/lib.sh"
compile address.c <<'C'
#include "posix.h"
static sigjmp_buf back; static char *area; static volatile char *wanted;
static void handler(int number, siginfo_t *info, void *context) {
  greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
  printf("signal %d code %d error %llx, address as wanted %d, rip is the address %d\n", number, info->si_code, r[REG_ERR] & ~1ll, info->si_addr == wanted, r[REG_RIP] == (long)info->si_addr);
  siglongjmp(back, 1);
}
#define FAULT(address, access) do { wanted = (void *)(address); printf("%s: ", #access); if (!sigsetjmp(back, 1)) { access; printf("none\n"); } } while (0)
#define CALL(p) ((void (*)(void))(p))()
int main() {
  on_signal(SIGSEGV, handler, 0), on_signal(SIGBUS, handler, 0);
  area = mmap(NULL, 5 << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(area + 4096, 4096, PROT_NONE), mprotect(area + 8192, 4096, PROT_READ), munmap(area + 3 * 4096, 4096);
  int file = open("file", O_RDWR | O_CREAT, 0600); ftruncate(file, 100);
  volatile char *mapped = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  char volatile sink;
  for (int times = 0; times < 3; times++) {
    FAULT(NULL, sink = *(volatile char *)NULL);
    FAULT(area + 4099, sink = area[4099]);
    FAULT(area + 8193, area[8193] = 1);
    FAULT(area + 12288, memset(area + 12288, 0, 9));
    FAULT(mapped + 5000, sink = mapped[5000]);
    FAULT(0, sink = *(volatile char *)0x8000000000000000);
    FAULT(area + 16, CALL(area + 16));
    FAULT(area + 4096, CALL(area + 4096));
    FAULT(area + 3 * 4096 + 7, CALL(area + 3 * 4096 + 7));
    FAULT(NULL, CALL(NULL));
    FAULT(0x1234, CALL(0x1234));
    FAULT(0, CALL(0x8000000000001000));
    FAULT(0, asm volatile("movaps %%xmm0, (%0)" : : "r"(area + 1)));
    FAULT(area + 4096, asm volatile("push %0; ret" : : "r"(area + 4096)));
    FAULT(area + 4096 + 88, asm volatile("mov %0, %%rax; jmp *%%rax" : : "r"(area + 4096 + 88) : "rax"));
    FAULT(area + 4096, asm volatile("jmp *(%0)" : : "r"(area + 4096) : "rax"));
  }
}
C
same "$T/address"
