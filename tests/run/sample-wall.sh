# spec 3, S1: wall time has what a thread waits for, at the call that waits; CPU time has not.
. "$(dirname "$0")/lib.sh"
compile waits.c <<'C'
#include "posix.h"
__attribute__((noipa)) static void rest(void) { struct timespec t = {0, 500000000}; CHECK(nanosleep(&t, NULL) == 0); }
int main() { rest(); puts("rested"); }
C
seconds() { report functions --format json | python3 -c "import json, sys; print(sum(f['total_seconds'] for f in json.load(sys.stdin)['functions'] if f['name'] == 'rest'))"; }
OPTIONS=--clock=wall RATE=1000 sampled "$T/waits"
python3 -c "import sys; sys.exit(not 0.4 < $(seconds) < 5)" || fail "it rested $(seconds) s: $(report)"
OPTIONS=--clock=cpu RATE=1000 sampled "$T/waits"
python3 -c "import sys; sys.exit(not $(seconds) < 0.2)" || fail "it computed $(seconds) s"
# Those who wait for ever tell nothing themselves: they are looked at.
compile waits_on.c -pthread <<'C'
#include "posix.h"
__attribute__((noipa)) static void listens(void) { char c; CHECK(read(0, &c, 1) == 0); }
__attribute__((noipa)) static void *never(void *p) { pause(); return NULL; }
int main() { pthread_t t; pthread_create(&t, NULL, never, NULL); puts("ready"), fflush(stdout), listens(); puts("right"), fflush(stdout), _exit(0); }
C
start "$T/waits_on"
timeout -k 5 $LIMIT "$WEIR" sample -q --clock=wall --pid $P --seconds 0.5 -o "$T/run.weir" || fail "attached: $?"
seen listens never
finish
[[ $(<"$T/started.status") == 0 && $(tail -n 1 "$T/started.out") == right ]] || fail "$(<"$T/started.status") $(<"$T/started.out")"
