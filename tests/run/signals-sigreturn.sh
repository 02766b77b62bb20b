# Sigreturn to edited contexts, setcontext out of a handler, and a sigreturn frame made by hand.
. "$(dirname "$0")/lib.sh"
compile sigreturn.c <<'C'
#include "posix.h"
static ucontext_t kept, before; static volatile int returns;
static long landed(long a, long b) { printf("landed with %ld %ld\n", a, b); fflush(stdout); return a + b; }
static char stack[65536] __attribute__((aligned(64)));
static void finish(void) { puts("finished by return"); fflush(stdout); setcontext(&before); }
static void edit(int number, siginfo_t *info, void *context) {
  greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
  long *top = (long *)(stack + sizeof stack - 16 - 8);
  *top = (long)finish;
  r[REG_RIP] = (long)landed, r[REG_RDI] = 30, r[REG_RSI] = 12, r[REG_RSP] = (long)top;
}
static void keep(int number, siginfo_t *info, void *context) { kept = *(ucontext_t *)context; }
static void leave(int number, siginfo_t *info, void *context) { setcontext(&before); }
void hand_made(ucontext_t *);
asm("hand_made: mov %rdi, %rsp; mov $15, %eax; syscall; ud2");
int main() {
  on_signal(SIGUSR1, edit, 0), on_signal(SIGTRAP, keep, 0), on_signal(SIGALRM, leave, 0);
  volatile int step = 0;
  getcontext(&before);
  if (step++ == 0) raise(SIGUSR1);
  sigset_t set; sigprocmask(SIG_BLOCK, NULL, &set);
  printf("step %d, blocked %d\n", step, sigismember(&set, SIGUSR1)), fflush(stdout);
  if (step == 2) raise(SIGALRM);
  step = 100;
  asm volatile("int3" ::: "memory");                 // the hand-made frame returns here
  if (returns++ < 5) {
    struct { ucontext_t uc; } *frame = (void *)(stack + 4096);
    frame->uc = kept, frame->uc.uc_mcontext.fpregs = NULL;
    printf("return %d\n", returns), fflush(stdout);
    hand_made(&frame->uc);
  }
  puts("end");
}
C
same "$T/sigreturn"
