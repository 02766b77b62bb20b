# spec 3, S1: samples by event: page faults where they happen; what there is not is told in one line.
. "$(dirname "$0")/lib.sh"
compile faults.c <<'C'
#include "posix.h"
__attribute__((noipa)) static void touch(char *room) { for (long i = 0; i < 2000; i++) room[i * 4096] = 1; }
int main() { char *room = mmap(NULL, 2000 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); madvise(room, 2000 * 4096, MADV_NOHUGEPAGE); touch(room); puts("done"); }
C
timeout -k 5 $LIMIT "$WEIR" sample --event page-faults -o "$T/run.weir" -- "$T/faults" >"$T/out" 2>"$T/err" || fail "status $?: $(<"$T/err")"
[[ $(ask "SELECT event || ' ' || period || ' ' || (rate = 0) FROM sampling") == 'page-faults 1 1' ]] || fail "$(ask 'SELECT * FROM sampling')"
(($(ask "SELECT self FROM function_total WHERE name = 'touch'") > 1900)) || fail "not all faults: $(report functions)"
timeout -k 5 $LIMIT "$WEIR" sample -q --event minor-faults:100 -o "$T/run.weir" -- "$T/faults" >"$T/out" 2>"$T/err" || fail "status $?: $(<"$T/err")"
[[ $(ask "SELECT period, (SELECT self FROM function_total WHERE name = 'touch') BETWEEN 15 AND 21 FROM sampling") == '100|1' ]] || fail "every hundredth: $(report functions)"
expect_fail 125 'nonsense: there is no such event; there are: .*page-faults' "$WEIR" sample --event nonsense -- true
expect_fail 125 'how many events' "$WEIR" sample --event page-faults:0 -- true
expect_fail 125 'how many events' "$WEIR" sample --event page-faults:x -- true
# Where a virtual machine has no counters, that is told, with what there is.
if ! timeout -k 5 $LIMIT "$WEIR" sample -q --event cycles -o "$T/c.weir" -- true 2>/dev/null; then
  expect_fail 125 'cycles: .*does not offer that event.*cpu and wall' "$WEIR" sample --event cycles -- true
fi
