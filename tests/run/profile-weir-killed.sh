# spec 1, B1: weir killed with SIGKILL in mid-run: the program ends, and the counts up to that moment are in the file.
. "$(dirname "$0")/lib.sh"
compile spins.c <<'C'
#include "posix.h"
__attribute__((noipa)) static uint64_t turn(uint64_t x) { return mix(x, 1); }
int main(int argc, char **argv) { uint64_t x = 0; FILE *f = fopen(argv[1], "w"); fprintf(f, "%d\n", getpid()), fclose(f); for (;;) x = turn(x); }
C
"$WEIR" profile -q -o "$T/run.weir" -- "$T/spins" "$T/pid" 2>"$T/err" & weir=$!
wait_for test -s "$T/pid"
works "$(<"$T/pid")"
kill -KILL $weir; wait $weir || true
wait_for is_gone "$(<"$T/pid")" || fail "the program goes on"
wait_for test -e "$T/run.weir" || fail "no profile"
"$WEIR" report "$T/run.weir" functions --format json >"$T/report.json"
python3 - "$T/report.json" <<'P' || fail "no counts"
import json, sys
calls = {f["name"]: f["calls"] for f in json.load(open(sys.argv[1]))["functions"]}
sys.exit(0 if calls.get("turn", 0) > 1000 and calls.get("main") == 1 else 1)
P
"$WEIR" report "$T/run.weir" summary --no-pager | grep -Eq 'incomplete|cut short|stopped' || fail "the report does not say that the run was cut short: $("$WEIR" report "$T/run.weir" summary --no-pager | tail -n 2)"
