# Children that set all signals to their defaults before they execute another program, as daemons and shells do, live through it.
. "$(dirname "$0")/lib.sh"
compile resets.c <<'C'
#include "posix.h"
static volatile long n;
static void spin(void) { for (int i = 0; i < 300000; i++) n++; }
static void on(int number, siginfo_t *info, void *context) { n++; }
int main(int argc, char **argv) {
  if (argc > 1) { struct sigaction a; CHECK(sigaction(SIGTRAP, NULL, &a) == 0); spin(); return a.sa_handler == SIG_IGN ? 2 : a.sa_handler == SIG_DFL ? 1 : 0; }
  for (int i = 0; i < 60; i++) {
    int status, how = i % 4; sigset_t all, old; sigfillset(&all);
    if (how == 3) on_signal(SIGTRAP, on, 0);
    if (how == 2) sigprocmask(SIG_BLOCK, &all, &old);
    pid_t pid = fork();
    if (!pid) {
      for (int s = 1; s < 65 && how != 3; s++) signal(s, how ? SIG_DFL : SIG_IGN);
      spin();
      if (how == 2) sigprocmask(SIG_SETMASK, &old, NULL);
      execl(argv[0], argv[0], "child", NULL);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    if (how == 2) sigprocmask(SIG_SETMASK, &old, NULL);
    if (status != (how ? 1 : 2) << 8) printf("%d, way %d: status %x\n", i, how, status);
    signal(SIGTRAP, SIG_DFL);
  }
  puts("done");
}
C
sampled "$T/resets"
