# contracts: Ctrl-C reaches Weir and the program alike: the status is native, handlers run, and the counts are written.
. "$(dirname "$0")/lib.sh"
compile endless.c <<'C'
#include "posix.h"
static volatile int stop;
static void on_interrupt(int number, siginfo_t *info, void *context) { stop = 1; }
int main(int argc, char **argv) {
  if (argc > 2) on_signal(SIGINT, on_interrupt, 0);
  for (volatile long n = 0; !stop; n++) if (n == 1000000) creat(argv[1], 0600);
  return 5;
}
C
for arguments in '' handler; do
  expected=$([[ $arguments ]] && echo 5 || echo 130)
  rm -f "$T/count.json"
  interrupted INT "$WEIR" run -q --tool=icount --json "$T/count.json" -- "$T/endless" "$T/ready" $arguments
  [[ $(<"$T/weir.status") == "$expected" ]] || fail "status $(<"$T/weir.status"), not $expected: $(<"$T/weir.err")"
  [[ $(json 'j["instructions"] > 1000000') == True ]] || fail "no counts: $(json j)"
done
