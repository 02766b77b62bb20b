# Totals of inlined functions that are reached from themselves: by call paths they are right, else they are marked as estimates.
. "$(dirname "$0")/lib.sh"
need jq
compile circles.cc -g <<'C'
#include <cstdio>
volatile long sink;
[[gnu::noinline]] static void work(long n) { for (long i = 0; i < n; i++) sink += i; }
static long outer(int n);
static inline __attribute__((always_inline)) long copied(int n) { work(10); return n ? outer(n - 1) : 0; }
[[gnu::noinline]] static long holder(int n) { return copied(n) + 1; }
[[gnu::noinline]] static long outer(int n) { work(100); return holder(n) + 1; }
static long walk(int n);
[[gnu::noinline]] static long step(int n) { return walk(n) + 1; }
static long walk(int n) { work(50); if (n % 7 == 3) return step(n - 1); return n > 0 ? walk(n - 2) + walk(n - 3) : 0; }
__attribute__((flatten, noinline)) static long begin(int n) { return walk(n) * 3; }
int main() {
  long s = 0;
  for (int i = 0; i < 1000; i++) s += outer(20);
  for (int i = 0; i < 10; i++) s += begin(15);
  printf("%ld\n", s);
}
C
value() { report functions --limit 0 --format json | jq -r ".functions[] | select(.name | test(\"^$1(\\\\(|\$)\")) | .$2"; }
# within X Y: X is Y, but for a hundredth
within() { ((100 * $1 >= 99 * $2 && 100 * $1 <= 101 * $2)) || fail "$3: $1, not $2"; }
OPTIONS=--paths=full profile "$T/circles"
[[ $(value copied inlined) == 21000 ]] || fail "copied is not inlined: $(value copied inlined)"
# All that `holder` does is in its copy of `copied`, and `begin` does nothing but walk.
within "$(value copied total)" "$(value holder total)" copied
within "$(value walk total)" "$(($(value begin total) - $(value begin self)))" walk
[[ $(value copied total_is_estimate)$(value walk total_is_estimate) == 00 ]] || fail 'what paths tell is no estimate'
profile "$T/circles"
[[ $(value copied total_is_estimate)$(value work total_is_estimate) == 10 ]] || fail "estimates: $(value copied total_is_estimate)"
report functions --filter '^copied' | grep -q '≈ .*copied' || fail "not marked: $(report functions --filter '^copied')"
report detail copied | grep -q 'paths=full' || fail "no remedy: $(report detail copied)"
RATE=20000 sampled "$T/circles"
if [[ $(value holder total) -gt 50 ]]; then [[ $(value copied total) -ge $(($(value holder total) * 9 / 10)) ]] || fail "sampled: copied $(value copied total), holder $(value holder total)"; fi
