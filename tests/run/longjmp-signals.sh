# Siglongjmp out of signal handlers, synchronous and asynchronous, masks restored or not.
. "$(dirname "$0")/lib.sh"
compile jumps.c <<'C'
#include "posix.h"
static sigjmp_buf back;
static void leave(int number, siginfo_t *info, void *context) { siglongjmp(back, number); }
static int blocked(int number) { sigset_t set; sigprocmask(SIG_BLOCK, NULL, &set); return sigismember(&set, number); }
int main() {
  on_signal(SIGSEGV, leave, 0), on_signal(SIGFPE, leave, 0), on_signal(SIGUSR1, leave, 0), on_signal(SIGALRM, leave, 0);
  volatile int counts[65] = {}, one = 1, zero = 0;
  for (volatile int i = 0; i < 3000; i++) {
    int number = sigsetjmp(back, 1);
    if (number) { counts[number]++; CHECK(!blocked(number)); continue; }
    if (i % 3 == 0) *(volatile int *)0 = 1;
    if (i % 3 == 1) raise(SIGUSR1);
    if (i % 3 == 2) zero = one / zero;
  }
  printf("%d %d %d\n", counts[SIGSEGV], counts[SIGUSR1], counts[SIGFPE]);
  if (sigsetjmp(back, 0) == 0) raise(SIGUSR1);
  printf("still blocked: %d\n", blocked(SIGUSR1));
  struct itimerval soon = {{0, 0}, {0, 500}};
  for (volatile int i = 0; i < 200; i++) {
    if (sigsetjmp(back, 1)) { counts[SIGALRM]++; continue; }
    setitimer(ITIMER_REAL, &soon, NULL);
    for (volatile uint64_t n = 0;; n++) {}
  }
  printf("%d\n", counts[SIGALRM]);
}
C
same "$T/jumps"
