# Handlers by raise, kill, tgkill, sigqueue and alarm, with their siginfo, nested.
. "$(dirname "$0")/lib.sh"
compile basics.c <<'C'
#include "posix.h"
static void handler(int number, siginfo_t *info, void *context) {
  dprintf(1, "signal %d code %d from me %d value %d\n", number, info->si_code, info->si_pid == getpid(),
          info->si_code == SI_QUEUE ? info->si_value.sival_int : 0);
  if (number == SIGUSR1) raise(SIGUSR2);
  if (number == SIGUSR2) dprintf(1, "inner\n");
  errno = 99;
}
static void simple(int number) { dprintf(1, "simple %d\n", number); }
int main() {
  on_signal(SIGUSR1, handler, 0), on_signal(SIGUSR2, handler, 0), on_signal(SIGALRM, handler, 0), on_signal(SIGRTMIN + 3, handler, 0);
  signal(SIGTERM, simple);
  raise(SIGUSR1);
  kill(getpid(), SIGTERM);
  syscall(SYS_tgkill, getpid(), gettid(), SIGUSR2);
  sigqueue(getpid(), SIGRTMIN + 3, (union sigval){.sival_int = 77});
  sigset_t none, alarm; sigemptyset(&none), sigemptyset(&alarm), sigaddset(&alarm, SIGALRM);
  sigprocmask(SIG_BLOCK, &alarm, NULL);  // (it may be due before the next call)
  ualarm(1000, 0);
  CHECK(sigsuspend(&none) == -1 && errno == EINTR);
  sigprocmask(SIG_UNBLOCK, &alarm, NULL);
  signal(SIGTERM, SIG_IGN);
  raise(SIGTERM);
  struct sigaction old;
  sigaction(SIGTERM, NULL, &old);
  printf("ignored %d\n", old.sa_handler == SIG_IGN);
  sigaction(SIGUSR1, NULL, &old);
  printf("as set %d %x\n", old.sa_sigaction == handler, old.sa_flags & SA_SIGINFO);
  CHECK(sigaction(SIGKILL, &old, NULL) == -1 && errno == EINVAL);
  sigaction(SIGCHLD, NULL, &old);
  printf("default %d\n", old.sa_handler == SIG_DFL);
}
C
same "$T/basics"
build "$T/basics.c" "$T/basics" -static
same "$T/basics"
