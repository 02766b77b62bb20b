# When Weir is killed, what its tool's regions held is written by the guardian, for all processes, and none of them goes on.
. "$(dirname "$0")/lib.sh"
use_tool marks
compile endless.c <<'C'
#include "marks.h"
int main(int argc, char **argv) {
  for (int i = 0; i < 3; i++) {
    volatile uint64_t *own = region(MARKS_OWN_FILE);
    own[0] = 70 + i;
    if (i < 2 && fork()) break;
  }
  region(MARKS_LOG_FILE)[0] = 99;
  if (region(MARKS_OWN_FILE)[0] == 72) { FILE *f = fopen(argv[1], "w"); fclose(f); }
  for (;;) usleep(1000);
}
C
for signal in KILL TERM; do
  rm -f "$T/ready" "$T/weir.json"
  "$WEIR" run --json "$T/weir.json" -- "$T/endless" "$T/ready" 2>/dev/null & weir=$!
  wait_for test -e "$T/ready"
  children=$(pgrep -f "^$T/endless" | tr '\n' ' ')
  if [[ $signal == KILL ]]; then kill -KILL $weir; else kill -KILL $children; fi
  wait_for is_gone $weir || fail "Weir hangs"
  for child in $children; do wait_for is_gone "$child" || fail "$child goes on"; done
  wait $weir 2>/dev/null || true
  wait_for test -s "$T/weir.json"
  [[ $(told 'sorted(r["first"] for r in j["regions"]["3"]), max(r["first"] for r in j["regions"]["2"])') == '[70, 71, 72] 99' ]] || fail "$signal: $(<"$T/weir.json")"
done
