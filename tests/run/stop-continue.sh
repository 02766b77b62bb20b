# Job control: SIGSTOP, SIGTSTP and SIGCONT, seen by a parent with WUNTRACED and WCONTINUED.
. "$(dirname "$0")/lib.sh"
compile stop.c <<'C'
#include "posix.h"
static volatile int continued;
static void on_continue(int number, siginfo_t *info, void *context) { continued = 1; }
int main() {
  static const int numbers[] = {SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU};
  for (int i = 0; i < 8; i++) {
    int ready[2], go[2]; pipe(ready), pipe(go);
    pid_t child = fork(); int status;
    if (child == 0) {
      setpgid(0, 0), on_signal(SIGCONT, on_continue, 0), write(ready[1], "", 1);
      if (i >= 4) raise(numbers[i - 4]);
      uint64_t sum = 0; for (uint64_t n = 0; !continued; n++) sum = mix(sum, n);
      read(go[0], &sum, 1);
      _exit(10 + i);
    }
    char c; read(ready[0], &c, 1);
    if (i < 4) kill(child, numbers[i]);
    waitpid(child, &status, WUNTRACED), print_status("first", status);
    kill(child, SIGCONT), waitpid(child, &status, WCONTINUED), print_status("then", status);
    write(go[1], "", 1), waitpid(child, &status, 0), print_status("last", status);
  }
}
C
same "$T/stop"
