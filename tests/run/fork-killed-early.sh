# Processes that share their parent's memory are killed at any instant after their birth: the parent goes on, and
# no Weir is left behind.
. "$(dirname "$0")/lib.sh"
compile killed.c <<'C'
#include "posix.h"
#include <sched.h>
static char stacks[150][65536];
static int work(void *number) { for (;;) { char text[99]; snprintf(text, 99, "%f", 1.0 * (long)number), strtod(text, NULL); } }
int main() {
  for (long i = 0; i < 150; i++) {
    pid_t child = clone(work, stacks[i] + 65536, CLONE_VM | SIGCHLD, (void *)i);
    usleep(random() % 400), kill(child, SIGKILL), waitpid(child, NULL, 0);
    char text[99]; sprintf(text, "%ld", i), atoi(text);
  }
  return puts("done") < 0;
}
C
same "$T/killed"; same "$T/killed"
is_over() { ! pgrep -f "$T/killed"; }
wait_for is_over || fail 'a Weir is left behind'
