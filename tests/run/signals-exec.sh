# Across exec ignored signals stay ignored, handlers are reset, mask and pending signals are kept; fork clears the pending.
. "$(dirname "$0")/lib.sh"
compile across.c <<'C'
#include "posix.h"
static void handler(int number, siginfo_t *info, void *context) { printf("handler %d\n", number), fflush(stdout); }
static void show(const char *who) {
  sigset_t blocked, pending; sigprocmask(SIG_BLOCK, NULL, &blocked), sigpending(&pending); struct sigaction a; stack_t stack; sigaltstack(NULL, &stack);
  for (int n = 1; n < 32; n++) { sigaction(n, NULL, &a);
    if (sigismember(&blocked, n) || sigismember(&pending, n) || a.sa_handler != SIG_DFL)
      printf("%s: %d blocked %d pending %d %s\n", who, n, sigismember(&blocked, n), sigismember(&pending, n), a.sa_handler == SIG_IGN ? "ignored" : a.sa_handler == SIG_DFL ? "default" : "handler"); }
  printf("altstack %d, timer %d\n", stack.ss_flags, ({ struct itimerval t; getitimer(ITIMER_REAL, &t); t.it_value.tv_sec > 0; })), fflush(stdout);
}
int main(int argc, char **argv) {
  if (argc > 1) { show("after exec"); sigset_t none; sigemptyset(&none), signal(SIGUSR1, SIG_IGN), sigprocmask(SIG_SETMASK, &none, NULL); return 6; }
  sigset_t set; sigemptyset(&set), sigaddset(&set, SIGUSR1), sigaddset(&set, SIGHUP);
  on_signal(SIGUSR1, handler, 0), on_signal(SIGUSR2, handler, 0), signal(SIGINT, SIG_IGN), signal(SIGPIPE, SIG_IGN);
  stack_t stack = {malloc(65536), 0, 65536}; sigaltstack(&stack, NULL);
  sigprocmask(SIG_BLOCK, &set, NULL), raise(SIGUSR1), alarm(1000);
  show("before");
  if (fork() == 0) { show("child"); raise(SIGUSR2); _exit(0); }
  wait(NULL);
  execl(argv[0], argv[0], "again", NULL);
}
C
STATUS=6 same "$T/across"
