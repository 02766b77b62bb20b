# Processes that end while Weir leaves them, and whose parent never asks how (a container whose first process does not): there is nothing to wait for.
. "$(dirname "$0")/lib.sh"
compile orphans.c <<'C'
#include "posix.h"
#include <sys/prctl.h>
int main(int argc, char **argv) {
  if (argc > 1) {  // the parent that never asks
    CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    pid_t child = fork();
    if (child == 0) execv(argv[1], argv + 1), _exit(1);
    int status;
    return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
  }
  int pipes[2];
  CHECK(pipe(pipes) == 0);
  for (int i = 0; i < 60; i++)
    if (fork() == 0) {
      close(pipes[1]);
      char byte;
      (void)!read(pipes[0], &byte, 1);  // the first process has ended
      usleep(i * 400);
      _exit(0);
    }
  usleep(100000);
}
C
"$T/orphans" "$WEIR" sample -q -o "$T/run.weir" -- "$T/orphans" 2>"$T/err" || fail "status $?: $(<"$T/err")"
[[ ! -s $T/err ]] || fail "$(<"$T/err")"
