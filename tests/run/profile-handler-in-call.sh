# A handler runs while an OS call waits, and the thread ends in that call: what the handler took is no time of the caller's own.
. "$(dirname "$0")/lib.sh"
compile ends.c <<'C'
#include "posix.h"
static volatile int n;
static void handler(int number, siginfo_t *info, void *context) { for (int i = 0; i < 1000; i++) n++; }
int main() {
  int end[2]; CHECK(!pipe(end));
  on_signal(SIGUSR1, handler, SA_RESTART);
  pid_t child = fork(); char c; int status;
  if (child == 0) read(end[0], &c, 1);
  usleep(100000), kill(child, SIGUSR1), usleep(100000), kill(child, SIGKILL);
  waitpid(child, &status, 0);
  puts("right");
}
C
for options in --clock=cycles --clock=instructions --paths=full; do
  OPTIONS=$options profile "$T/ends"
  answers "SELECT max(c.self_max) BETWEEN 1 AND 200 FROM function_count c JOIN function f ON f.id = c.function JOIN string s ON s.id = f.name WHERE s.text = 'read'" <<<1
done
