# A tool with regions comes to processes that run, and leaves nothing behind: not in their memory, nor in their limits; also where they lock all that they map.
. "$(dirname "$0")/lib.sh"
use_tool marks
build "$PROGRAMS/busy.c" "$T/busy" -pthread
for what in c p r v t h; do
  start "$T/busy" $what
  prlimit --data=2000000000:3000000000 --pid $P
  state >"$T/before"; prlimit --data --raw --noheadings --pid $P >>"$T/before"
  for round in 1 2; do
    "$WEIR" run --pid $P --seconds 0.2 --json "$T/weir.json" 2>"$T/err" || fail "$what: status $?: $(<"$T/err")"
    [[ ! -s $T/err ]] || fail "$what: $(<"$T/err")"
  done
  state >"$T/after"; prlimit --data --raw --noheadings --pid $P >>"$T/after"
  diff "$T/before" "$T/after" || fail "$what: something is left"
  [[ $(told 'len(j["regions"]["2"])') == 1 ]] || fail "$what: $(<"$T/weir.json")"
  finish
  [[ $(<"$T/started.status") == 0 && $(tail -n 1 "$T/started.out") == 'wrong 0' ]] || fail "$what: $(<"$T/started.status") $(<"$T/started.out")"
done
# A thread that waits in a call: when it is over that is told, as far as it is known. Then all is.
compile waits.c <<'C'
#include "marks.h"
static char text[64];
int main(void) {
  puts("ready"), fflush(stdout);
  CHECK(read(0, text, 8) == 2);
  if (marked(text, 8) == 2) { struct MarksCounts c; ask_marks(MARKS_COUNTS, &c, 0, 0); printf("attached %d %d\n", c.without_begin == 0, c.unknown > 0), fflush(stdout); }
  for (int i = 0; i < 3; i++) if (fork() == 0) { volatile uint64_t *r = region(MARKS_OWN_FILE); r[0] = 1000 + i, r = region(MARKS_SHADOW), r[2]++; _exit(0); } else wait(NULL);
  clear_marks(text, 8), CHECK(read(0, text, 8) == 1); printf("%d\n", marked(text, 8)), fflush(stdout);
  while (read(0, text, 8) > 0) {}
}
C
start "$T/waits"
"$WEIR" run --pid $P --seconds 100 --json "$T/weir.json" 2>"$T/err" & weir=$!
wait_for is_attached $P
echo a >&9; wait_for grep -qs attached "$T/started.out"; printf b >&9; wait_for grep -qx 1 "$T/started.out"
kill -INT $weir; wait $weir || fail "status $?: $(<"$T/err")"
is_attached $P && fail "it is still there"
finish
[[ $(<"$T/started.status") == 0 && $(<"$T/started.out") == $'ready\nattached 1 1\n1' ]] || fail "$(<"$T/started.out")"
[[ $(told 'sorted(r["first"] for r in j["regions"]["3"])') == '[0, 1000, 1001, 1002]' ]] || fail "$(<"$T/weir.json")"
if ((EUID == 0)); then
  compile locked.c <<'C'
#include "posix.h"
int main(void) { char c; puts(mlockall(MCL_CURRENT | MCL_FUTURE) ? "may not" : "ready"), fflush(stdout); while (read(0, &c, 1) > 0) {} puts("done"); }
C
  start "$T/locked"
  state >"$T/before"
  timeout 60 "$WEIR" run --pid $P --seconds 0.2 2>"$T/err" || fail "locked: $? $(<"$T/err")"
  state >"$T/after"; diff "$T/before" "$T/after" || fail "locked: something is left"
  finish; [[ $(<"$T/started.status") == 0 ]] || fail "locked: $(<"$T/started.status")"
fi
