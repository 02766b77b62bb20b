# The Weir that stays behind with a daemon passes signals on to that, and to nobody who has the number of the program now.
. "$(dirname "$0")/lib.sh"
compile daemon.c <<'C'
#include "posix.h"
static char **args;
static void caught(int sig, siginfo_t *info, void *context) { creat(args[2], 0600), _exit(0); }
int main(int argc, char **argv) {
  args = argv;
  if (fork()) _exit(0);
  setsid(), on_signal(SIGTERM, caught, 0), creat(argv[1], 0600);
  for (int i = 0; i < 3000; i++) usleep(100000);
}
C
MARK=$T "$WEIR" run -- "$T/daemon" "$T/ready" "$T/caught"
behind() { local p; for p in $(grep -lzsx "MARK=$T" /proc/[0-9]*/environ | cut -d/ -f3); do [[ $(<"/proc/$p/comm") != weir ]] || echo $p; done; }
wait_for test -e "$T/ready"
weir=$(behind); [[ $weir =~ ^[0-9]+$ ]] || fail "left behind: '$weir'"
kill -TERM $weir
wait_for test -e "$T/caught" || fail 'no signal came'
wait_for is_gone $weir || fail 'Weir stays'
