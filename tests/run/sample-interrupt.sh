# contracts: Ctrl-C and SIGTERM end a program that is sampled as they do natively, and the profile is written; attached, they let go.
. "$(dirname "$0")/lib.sh"
compile endless.c <<'C'
#include "posix.h"
static volatile int stop;
static void on(int number, siginfo_t *info, void *context) { stop = 1; }
__attribute__((noipa)) static void turn(const char *ready) { for (volatile long n = 0; !stop; n++) if (n == 100000000) creat(ready, 0600); }
int main(int argc, char **argv) {
  if (argc > 2) on_signal(SIGINT, on, 0), on_signal(SIGTERM, on, 0);
  alarm(300), puts("ready"), fflush(stdout), turn(argv[1]); return 5;
}
C
for signal in INT TERM; do
  for arguments in '' handler; do
    expected=$([[ $arguments ]] && echo 5 || echo $((128 + $(kill -l $signal))))
    rm -f "$T/run.weir"
    interrupted $signal "$WEIR" sample -q -F 2000 -o "$T/run.weir" -- "$T/endless" "$T/ready" $arguments
    [[ $(<"$T/weir.status") == "$expected" ]] || fail "$signal $arguments: status $(<"$T/weir.status"), not $expected: $(<"$T/weir.err")"
    seen turn
  done
  start "$T/endless" "$T/unused"
  "$WEIR" sample -q --pid $P -o "$T/run.weir" 9>&- & weir=$!
  wait_for is_attached $P && works $P 30
  kill -$signal $weir
  wait $weir || fail "attached, $signal: status $?"
  seen turn
  [[ $(grep -c memfd:weir /proc/$P/maps) == 0 ]] || fail "attached, $signal: something is left"
  kill $P; finish
  [[ $(<"$T/started.status") == 143 ]] || fail "attached, $signal: $(<"$T/started.status")"
done
