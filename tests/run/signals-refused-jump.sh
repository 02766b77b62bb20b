# A return to an address that the processor refuses faults at the return, also when another signal comes just then.
. "$(dirname "$0")/lib.sh"
compile refused.c <<'C'
#include "posix.h"
#include <setjmp.h>
static sigjmp_buf back; static volatile long ticks; static long wrong; extern char at_return[];
static void fault(int number, siginfo_t *info, void *context) { wrong += ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] != (long)at_return; siglongjmp(back, 1); }
static void tick(int number, siginfo_t *info, void *context) { ticks++; }
void go(void);
asm("go: movabs $0xc3ce065bb79df70d, %rax; push %rax; at_return: ret");
int main() {
  on_signal(SIGSEGV, fault, 0), on_signal(SIGALRM, tick, 0);
  struct itimerval often = {{0, 1000}, {0, 1000}}; setitimer(ITIMER_REAL, &often, NULL);
  for (volatile int i = 0; i < 20000; i++) if (!sigsetjmp(back, 1)) go();
  printf("%ld\n", wrong);
}
C
same "$T/refused"
