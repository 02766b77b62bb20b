# Signal masks: sigprocmask, sa_mask, SA_NODEFER, SA_RESETHAND, pending, sigsuspend.
. "$(dirname "$0")/lib.sh"
compile masks.c <<'C'
#include "posix.h"
static int depth, left;
static void show(const char *what) { sigset_t set, pending; sigprocmask(SIG_BLOCK, NULL, &set), sigpending(&pending);
  printf("%s: blocked", what); for (int n = 1; n < 65; n++) if (sigismember(&set, n)) printf(" %d", n);
  printf(", pending"); for (int n = 1; n < 65; n++) if (sigismember(&pending, n)) printf(" %d", n); puts(""); }
static void handler(int number, siginfo_t *info, void *context) {
  printf("%*s> %d\n", depth++, "", number), show("  inside");
  ucontext_t *uc = context; printf("  context blocks USR1 %d\n", sigismember(&uc->uc_sigmask, SIGUSR1));
  if (number == SIGUSR1 && depth < 3 && left-- > 0) raise(SIGUSR1), raise(SIGUSR2);
  if (number == SIGTERM) sigaddset(&uc->uc_sigmask, SIGHUP);                 // stays blocked after the return
  printf("%*s< %d\n", --depth, "", number);
}
static void set(int number, int flags, int masked) { left = flags == SA_RESETHAND ? 0 : 3; struct sigaction a = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags}; sigemptyset(&a.sa_mask); if (masked) sigaddset(&a.sa_mask, masked); sigaction(number, &a, NULL); }
int main() {
  sigset_t block, old, none; sigemptyset(&none), sigemptyset(&block);
  set(SIGUSR1, 0, 0), set(SIGUSR2, 0, 0), raise(SIGUSR1);
  set(SIGUSR1, SA_NODEFER, SIGUSR2), raise(SIGUSR1);
  set(SIGUSR1, SA_RESETHAND, 0), raise(SIGUSR1);
  struct sigaction now; sigaction(SIGUSR1, NULL, &now); printf("reset %d\n", now.sa_handler == SIG_DFL);
  set(SIGUSR1, 0, 0), set(SIGRTMIN, 0, 0), set(SIGRTMIN + 1, 0, 0), set(SIGTERM, 0, 0), set(SIGHUP, 0, 0);
  for (int n = 1; n < 65; n++) sigaddset(&block, n);
  sigprocmask(SIG_BLOCK, &block, &old);
  raise(SIGRTMIN + 1), raise(SIGRTMIN), raise(SIGRTMIN), raise(SIGUSR2), raise(SIGUSR2), raise(SIGTERM);
  show("all blocked");
  sigset_t but; sigfillset(&but), sigdelset(&but, SIGUSR2);
  CHECK(sigsuspend(&but) == -1 && errno == EINTR), show("after sigsuspend");
  sigprocmask(SIG_SETMASK, &none, NULL), show("none blocked");
  raise(SIGHUP), show("hup pending"), sigemptyset(&but), sigaddset(&but, SIGHUP), sigprocmask(SIG_UNBLOCK, &but, NULL);
  show("end");
}
C
same "$T/masks"
