# spec 3, S2 to S4, S10: a stack of 10,000 frames, of which most stay as they are: every caller is found, and few are unwound anew.
. "$(dirname "$0")/lib.sh"
compile deep.c <<'C'
#include "posix.h"
static volatile long n;
__attribute__((noipa)) static long leaf(long x) { for (int i = 0; i < 200000; i++) n++; return x; }
__attribute__((noipa)) static long down(long depth) { long below = 0; if (depth) below = down(depth - 1), n++; else for (int i = 0; i < 1000; i++) leaf(i); return below + 1; }
int main() { printf("%ld\n", down(10000)); }
C
OPTIONS=--verify RATE=2000 sampled "$T/deep"
seen leaf down main
[[ $(ask 'WITH RECURSIVE up(id, depth) AS (SELECT id, 1 FROM context WHERE parent IS NULL UNION ALL SELECT c.id, depth + 1 FROM context c JOIN up ON c.parent = up.id)
  SELECT max(depth) > 10000 FROM up') == 1 ]] || fail "not so deep: $(report tree --limit 5)"
[[ $(ask 'SELECT verify_differences, truncated, frames > 100 * frames_unwound, no_room FROM sampling') == '0|0|1|0' ]] || fail "$(report --format json | grep -A25 '"sampling"')"
