# Weir stops a thread that blocks its signal, and that thread cannot stop for a while, as it waits for a child of vfork: it goes on when it has stopped.
. "$(dirname "$0")/lib.sh"
compile late.c <<'S'
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static volatile long sum;
int main(void) {
  struct timespec moment = {0, 300000000};
  sigset_t all, old;
  sigfillset(&all);
  for (int i = 0; i < 5; i++) {
    sigprocmask(SIG_BLOCK, &all, &old);
    for (int k = 0; k < 5000000; k++) sum += k;  // so that a signal waits
    pid_t pid = vfork();
    if (pid == 0) {
      syscall(SYS_nanosleep, &moment, 0);
      syscall(SYS_exit_group, i);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    sigprocmask(SIG_SETMASK, &old, 0);
    printf("%d\n", WEXITSTATUS(status));
  }
}
S
LIMIT=60
sampled "$T/late"
# (On a busy machine Weir may know the code too late, and then cannot begin, as the thread blocks the signal nearly always.)
[[ $(report summary) == *'was not sampled: its code was not known'* ]] || seen main
