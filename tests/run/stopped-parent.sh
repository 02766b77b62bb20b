# A process stops itself; its child runs new code meanwhile, starts another one, and lets it go on.
. "$(dirname "$0")/lib.sh"
compile stopped.c <<'C'
#include "posix.h"
static char state(pid_t pid) {
  char name[50], text[200] = ""; sprintf(name, "/proc/%d/stat", pid);
  int fd = open(name, O_RDONLY); read(fd, text, sizeof text - 1), close(fd);
  return strrchr(text, ')')[2];
}
int main() {
  for (int i = 0; i < 5; i++) {
    pid_t parent = getpid(), child = fork(); int status;
    if (child == 0) {
      while (state(parent) != 'T') usleep(1000);
      print_status("child's child", system("exit 4")), printf("%g\n", strtod("1.5e3", NULL)), fflush(stdout);
      CHECK(state(parent) == 'T' && kill(parent, SIGCONT) == 0);
      _exit(10 + i);
    }
    raise(SIGSTOP);
    waitpid(child, &status, 0), print_status("continued; child", status);
  }
}
C
same "$T/stopped"
