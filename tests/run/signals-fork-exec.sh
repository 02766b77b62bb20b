# A signal that comes to a child at any instant between its fork and well after its exec ends it: kept while it is blocked, never lost.
. "$(dirname "$0")/lib.sh"
compile early.c <<'C'
#include "posix.h"
static volatile sig_atomic_t handled;
static void handler(int number, siginfo_t *info, void *context) { handled = 1; }
int main() {
  on_signal(SIGINT, handler, 0);
  sigset_t interrupt, before; sigemptyset(&interrupt), sigaddset(&interrupt, SIGINT);
  int ended = 0;
  for (int i = 0; i < 60; i++) {
    sigprocmask(SIG_BLOCK, &interrupt, &before);
    pid_t child = fork();
    if (child == 0) {
      if (i % 2) handled = 0, sigprocmask(SIG_SETMASK, &before, NULL), setpgid(0, 0), signal(SIGINT, SIG_DFL);
      else signal(SIGINT, SIG_DFL), setpgid(0, 0), sigprocmask(SIG_SETMASK, &before, NULL);
      if (handled) raise(SIGINT);                 // what a shell forgets
      execlp("sleep", "sleep", "100", NULL), _exit(1);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    usleep(i * 150), kill(child, SIGINT);
    int status; waitpid(child, &status, 0);
    ended += WIFSIGNALED(status) && WTERMSIG(status) == SIGINT;
  }
  printf("%d ended\n", ended);
}
C
same "$T/early"
