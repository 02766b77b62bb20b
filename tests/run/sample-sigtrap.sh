# Programs that use SIGTRAP themselves see their own actions, and get their own signals, in the midst of ours.
. "$(dirname "$0")/lib.sh"
compile trap.c <<'C'
#include "posix.h"
static volatile int handled, code; static volatile long spun;
static void on(int number, siginfo_t *info, void *context) { handled++, code = info->si_code; CHECK(number == SIGTRAP); }
static void on_other(int number, siginfo_t *info, void *context) { handled += 100; }
static void *where;
static void on_stack(int number, siginfo_t *info, void *context) { handled++, where = &number; CHECK(info->si_signo == SIGTRAP && ((ucontext_t *)context)->uc_stack.ss_size); }
static void spin(void) { for (long n = 0; n < 20000000; n++) spun++; }
static void *action(void) { struct sigaction a; CHECK(sigaction(SIGTRAP, NULL, &a) == 0); return a.sa_handler; }
static void breakpoint(void) { __asm__ volatile("int3"); }
int main(int argc, char **argv) {
  CHECK(action() == SIG_DFL);
  spin();
  CHECK(action() == SIG_DFL);
  switch (argv[1][0]) {
    case 'h': {  // handlers, one after the other
      on_signal(SIGTRAP, on, 0), spin();
      for (int i = 0; i < 50; i++) raise(SIGTRAP), breakpoint();
      CHECK(handled == 100 && code == SI_KERNEL && action() == (void *)on);
      struct sigaction a = {.sa_sigaction = on_other, .sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER}, old;
      sigaddset(&a.sa_mask, SIGUSR1);
      CHECK(sigaction(SIGTRAP, &a, &old) == 0 && old.sa_sigaction == on && sigaction(SIGTRAP, NULL, &old) == 0);
      CHECK(old.sa_sigaction == on_other && (old.sa_flags & 0xffffffff & ~0x04000000) == a.sa_flags && sigismember(&old.sa_mask, SIGUSR1) && !sigismember(&old.sa_mask, SIGUSR2));
      spin(), kill(getpid(), SIGTRAP), CHECK(handled == 200);
      break;
    }
    case 's': {  // on the stack that it asks for
      stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
      CHECK(sigaltstack(&stack, 0) == 0);
      for (int i = 0; i < 40; i++) {
        on_signal(SIGTRAP, on_stack, i & 1 ? SA_ONSTACK : 0), i < 2 ? spin() : (void)0, i & 2 ? raise(SIGTRAP) : (breakpoint(), 0);
        CHECK((where >= stack.ss_sp && where < stack.ss_sp + 65536) == (i & 1) && handled == i + 1);
      }
      break;
    }
    case 'o':  // a handler for once
      on_signal(SIGTRAP, on, SA_RESETHAND), spin(), raise(SIGTRAP), CHECK(handled == 1 && action() == SIG_DFL), spin();
      break;
    case 'i': signal(SIGTRAP, SIG_IGN), spin(), raise(SIGTRAP), spin(), CHECK(action() == SIG_IGN); break;
    case 'I': signal(SIGTRAP, SIG_IGN), spin(), breakpoint(), puts("not reached"); break;
    case 'd': spin(), raise(SIGTRAP), puts("not reached"); break;
    case 'b': spin(), breakpoint(), puts("not reached"); break;
    case 'a':  // as shells and daemons do
      for (int i = 1; i < 65; i++) signal(i, SIG_DFL);
      spin();
      for (int i = 1; i < 65; i++) { struct sigaction a; if (!sigaction(i, NULL, &a)) CHECK(a.sa_handler == SIG_DFL); }
      break;
    case 'e': CHECK(syscall(SYS_rt_sigaction, SIGTRAP, 8, NULL, 8) == -1 && errno == EFAULT), spin(); break;
  }
  puts("right");
}
C
for what in h s o i a e; do sampled "$T/trap" $what; done
for what in I d b; do STATUS=133 sampled "$T/trap" $what; done
