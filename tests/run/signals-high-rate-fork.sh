# Signals at a high rate while the program forks, executes and waits.
. "$(dirname "$0")/lib.sh"
compile rate.c <<'C'
#include "posix.h"
static volatile int signals;
static void tick(int number, siginfo_t *info, void *context) { signals++; }
int main(int argc, char **argv) {
  if (argc > 1) return 5;
  on_signal(SIGALRM, tick, SA_RESTART);
  struct itimerval often = {{0, 300}, {0, 300}};
  setitimer(ITIMER_REAL, &often, NULL);
  int status, sum = 0;
  for (int i = 0; i < 60; i++) {
    pid_t child = i % 3 == 2 ? vfork() : fork();
    if (child == 0) { if (i % 3) execl(argv[0], argv[0], "child", NULL); _exit(3); }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    sum += WEXITSTATUS(status);
  }
  while (signals < 300) {}
  printf("%d\n", sum);
}
C
same "$T/rate"
