# The signal mask is the program's own after each exec, while signals come all the time.
. "$(dirname "$0")/lib.sh"
compile mask.c <<'C'
#include "posix.h"
static void handler(int number, siginfo_t *info, void *context) {}
int main(int argc, char **argv) {
  sigset_t own, now; sigemptyset(&own), sigaddset(&own, SIGUSR1);
  if (argc == 1) {
    sigprocmask(SIG_SETMASK, &own, NULL);
    pid_t child = fork(); int status;
    if (child == 0) execl(argv[0], argv[0], "25", NULL);
    while (waitpid(child, &status, WNOHANG) == 0) kill(child, SIGURG), usleep(50);   // without a handler it does nothing
    print_status("chain", status);
    return 0;
  }
  sigprocmask(SIG_SETMASK, NULL, &now);
  if (memcmp(&now, &own, 8)) { printf("mask %lx at %s\n", *(long *)&now, argv[1]); return 1; }
  on_signal(SIGURG, handler, SA_RESTART);
  char next[20]; sprintf(next, "%d", atoi(argv[1]) - 1);
  for (volatile int i = 0; i < 100000; i++) {}
  if (strcmp(next, "0")) execl(argv[0], argv[0], next, NULL);
  return 7;
}
C
same "$T/mask"
