# A daemon that forks twice outlives its parent and does its work.
. "$(dirname "$0")/lib.sh"
compile daemon.c <<'C'
#include "posix.h"
int main(int argc, char **argv) {
  printf("starting\n"), fflush(stdout);
  if (!strcmp(argv[1], "libc")) daemon(1, 1);
  else {
    if (fork()) _exit(4);
    setsid();
    if (fork()) _exit(0);
  }
  for (int fd = 0; fd < 100; fd++) close(fd);
  usleep(50000);
  uint64_t sum = 0; for (int i = 0; i < 100000; i++) sum = mix(sum, i);
  FILE *file = fopen(argv[2], "w"); fprintf(file, "%lx, leads a session %d\n", sum, getsid(0) == getpid()), fclose(file);
  rename(argv[2], argv[3]);
}
C
for how in libc hand; do
  run native "$T/daemon" $how "$T/temporary" "$T/native.$how"
  wait_for test -e "$T/native.$how"
  for tool in $TOOLS; do
    run weir "$WEIR" run -q --tool="$tool" -- "$T/daemon" $how "$T/temporary" "$T/$tool.$how"
    for part in out err status; do diff "$T/native.$part" "$T/weir.$part"; done
    wait_for test -e "$T/$tool.$how"
    diff "$T/native.$how" "$T/$tool.$how"
  done
done
