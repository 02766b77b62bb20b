# --no-follow: children that execute a program run it natively, and all is as before.
. "$(dirname "$0")/lib.sh"
compile parent.c <<'C'
#include "posix.h"
int main(int argc, char **argv) {
  int status;
  if (fork() == 0) { puts("child without exec"); return 3; }
  wait(&status), print_status("fork", status);
  print_status("system", system("echo by the shell; exit 5"));
  if (argc > 1) execl("/bin/sh", "sh", "-c", "echo in place; exit 6", NULL);
  return 4;
}
C
OPTIONS=--no-follow STATUS=4 same "$T/parent"
OPTIONS=--no-follow STATUS=6 same "$T/parent" exec
OPTIONS=--no-follow same bash -c 'seq 1000 | sort -r | head -n 3; for i in 1 2 3; do (echo $i); done'
