# A daemon, whose parent ends as soon as it is forked, is not sampled to its end, and the user is told so.
. "$(dirname "$0")/lib.sh"
compile daemon.c <<'C'
#include "posix.h"
int main(void) {
  CHECK(daemon(1, 0) == 0);
  for (volatile long i = 0; i < 300000000; i++) {}
}
C
for try in 1 2 3 4; do
  (cd "$T"; "$WEIR" sample -o d.weir -- ./daemon 2>"err.$try")
  grep -q '^weir: processes that outlive the program, and are sampled no longer: 1 (weir sample --pid goes on)$' "$T/err.$try" || fail "$(<"$T/err.$try")"
done
