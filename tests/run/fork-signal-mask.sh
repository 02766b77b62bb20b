# A forked child has the program's own signal mask, also when signals come at a high rate.
. "$(dirname "$0")/lib.sh"
compile mask.c <<'C'
#include "posix.h"
#include <linux/sched.h>
static void tick(int number, siginfo_t *info, void *context) {}
static pid_t raw_fork(void) { struct clone_args how = {.exit_signal = SIGCHLD}; return syscall(SYS_clone3, &how, sizeof how); }
int main() {
  sigset_t own, now; sigemptyset(&own), sigaddset(&own, SIGUSR1), sigprocmask(SIG_SETMASK, &own, NULL);
  on_signal(SIGALRM, tick, SA_RESTART);
  struct itimerval often = {{0, 300}, {0, 300}}; setitimer(ITIMER_REAL, &often, NULL);
  int wrong = 0, status;
  for (int i = 0; i < 200; i++) {
    pid_t child = i % 4 ? raw_fork() : fork();   // fork() of the C library may block signals itself
    if (child == 0) { sigprocmask(SIG_SETMASK, NULL, &now); _exit(memcmp(&now, &own, 8) ? 1 : 0); }
    CHECK(waitpid(child, &status, 0) == child);
    if (status) wrong++;
  }
  printf("%d wrong\n", wrong);
}
C
same "$T/mask"
