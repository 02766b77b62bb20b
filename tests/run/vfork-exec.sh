# Vfork and exec: the child borrows the parent's memory; vfork children that only exit.
. "$(dirname "$0")/lib.sh"
compile vfork.c <<'C'
#include "posix.h"
int main() {
  volatile int shared = 0; int status;
  for (int i = 0; i < 50; i++) {
    pid_t child = vfork();
    if (child == 0) { shared++; _exit(i); }
    waitpid(child, &status, 0);
    CHECK(WEXITSTATUS(status) == i);
  }
  printf("shared %d\n", shared), fflush(stdout);
  for (int i = 0; i < 20; i++) {
    pid_t child = vfork();
    if (child == 0) { shared++; execl("/bin/echo", "echo", "child of vfork", NULL); _exit(1); }
    waitpid(child, &status, 0);
  }
  print_status("echo", status);
  if (vfork() == 0) { execl("/nonexistent", "x", NULL); shared = errno; _exit(44); }
  wait(&status);
  printf("errno %d\n", shared), print_status("missing", status);
}
C
same "$T/vfork"
