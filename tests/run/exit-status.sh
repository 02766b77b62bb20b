# spec 1, B2: the exit status is the program's own, by return, exit, _exit, exit_group and from destructors.
. "$(dirname "$0")/lib.sh"
compile status.c <<'C'
#include "posix.h"
static int status;
static void again(void) { _exit(status + 1); }
int main(int argc, char **argv) {
  status = atoi(argv[2]);
  printf("buffered\n");
  switch (argv[1][0]) {
    case 'r': return status;
    case 'e': exit(status);
    case '_': _exit(status);
    case 's': syscall(SYS_exit, status);
    case 'g': syscall(SYS_exit_group, status);
    case 'a': atexit(again); exit(status);
  }
}
C
for way in return exit _exit syscall group; do
  for status in 0 1 125 127 255; do STATUS=$status same "$T/status" $way $status; done
done
STATUS=6 same "$T/status" atexit 5
STATUS=1 same false
STATUS=0 same true
# What ended the program ends Weir, too: shells see SIGINT, and stop.
how() { perl -e 'system { $ARGV[0] } @ARGV; printf "%d %d\n", $? & 127, $? >> 8' -- "$@" 2>/dev/null; }
for verb in 'run -q' 'profile -q -o none.weir' 'sample -q -o none.weir'; do
  for name in INT SEGV KILL TERM; do
    # shellcheck disable=SC2086
    [[ $(how "$WEIR" $verb -- sh -c "kill -$name \$\$") == $(how sh -c "kill -$name \$\$") ]] || fail "$verb: SIG$name"
  done
  # shellcheck disable=SC2086
  [[ $(how "$WEIR" $verb -- sh -c 'exit 130') == '0 130' ]] || fail "$verb: exit 130"
done
