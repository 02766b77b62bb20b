# What a compiler puts apart of a function, as rare, and reaches by jumps, is the function: it has the calls of the same program compiled without such
# parts, with symbols and stripped; --parts shows them. Exceptions that are caught there belong to it, too.
. "$(dirname "$0")/lib.sh"
need sqlite3 python3
cat >"$T/parts.cc" <<'C'
#include <cstdio>
#include <cstdlib>
int sink;
__attribute__((cold, noinline)) void rare(int x) { sink += x; }
__attribute__((cold, noinline)) void fails(int x) { throw x; }
__attribute__((noinline)) int work(int x) {
  int s = 0;
  for (int i = 0; i < 50; i++) {
    if (__builtin_expect((x + i) % 37 == 0, 0)) { rare(i); s -= sink % 3; }
    s += (x ^ i) * 3;
  }
  return s;
}
__attribute__((noinline)) int catches(int x) {
  int s = 1;
  try { if (__builtin_expect(x % 100 == 0, 0)) fails(x); s += work(x); } catch (int e) { rare(e); s -= sink % 5; }
  return s + x;
}
int main() { long t = 0; for (int i = 0; i < 3000; i++) t += work(i) + catches(i); printf("%ld\n", t); }
C
build "$T/parts.cc" "$T/parts"
build "$T/parts.cc" "$T/plain" -fno-reorder-blocks-and-partition
nm -C "$T/parts" | grep -q 'work(int).*cold' || skip 'this compiler sets nothing apart'
calls() { ask "SELECT name, calls FROM function_total WHERE image = '$1' AND calls > 0 AND name GLOB '*(int)' ORDER BY 1"; }
profile "$T/plain"
calls "$T/plain" >"$T/truth"
grep -q '^work(int)|5970$' "$T/truth" || fail "without parts: $(<"$T/truth")"
profile "$T/parts"
calls "$T/parts" | diff "$T/truth" - || fail 'other calls than without parts'
report functions --limit 0 >"$T/functions"
! grep -q cold "$T/functions" || fail "a part is a row of its own: $(grep cold "$T/functions")"
OPTIONS=--paths=full profile "$T/parts"
calls "$T/parts" | diff "$T/truth" - || fail 'other calls with call paths'
report tree >"$T/tree"
! grep -q cold "$T/tree" || fail "a part is a call: $(<"$T/tree")"

# --parts: rows of their own, which add up to the function.
python3 - "$WEIR" "$T/run.weir" <<'P'
import json, subprocess, sys
rows = lambda *options: {(f['name'], f['image']): f for f in json.loads(subprocess.run([sys.argv[1], 'report', sys.argv[2], 'functions', '--format=json', '--limit=0', *options],
                                                                        check=True, capture_output=True).stdout)['functions']}
whole, parts = rows('--fold-inlined'), rows('--parts')
program = next(image for name, image in whole if name == 'work(int)')
cold = [name for name, image in parts if image == program and name.endswith(' [cold]')]
assert sorted(cold) == ['catches(int) [cold]', 'work(int) [cold]'], cold
for name in 'work(int)', 'catches(int)':
    hot, cold = parts[name, program], parts[name + ' [cold]', program]
    assert hot['self'] + cold['self'] == whole[name, program]['self'] and cold['self'] > 0, (name, hot, cold)
    assert cold['calls'] == 0 and hot['calls'] == whole[name, program]['calls'] and cold['total'] > cold['self'], (hot, cold)
assert sum(f['self'] for f in parts.values()) == sum(f['self'] for f in whole.values())
P
expect_fail 125 'goes neither with' "$WEIR" report "$T/run.weir" --parts --merge-clones

# Stripped: the same number of functions, with the same calls.
strip -o "$T/stripped" "$T/parts"
profile "$T/stripped"
numbers() { cut -d'|' -f2 "$T/truth" | sort -n; }
ask "SELECT calls FROM function_total WHERE image = '$T/stripped' AND calls IN ($(numbers | paste -sd,)) ORDER BY 1" | diff <(numbers) - || fail 'other calls in stripped code'

# Samples.
compile hot.c <<'C'
#include "posix.h"
volatile int sink;
__attribute__((cold, noinline)) static void rare(int x) { for (int i = 0; i < 2000; i++) sink += x; }
__attribute__((noipa)) int work(int x) {
  int s = x;
  for (int i = 0; i < 10; i++) {
    if (__builtin_expect(sink == i, 0)) { rare(i); for (int k = 0; k < 3000; k++) sink += k; rare(i); sink = i + 1; s -= sink % 3; }
    s ^= i * 3 + sink;
  }
  return s;
}
int main() { double end = cpu_seconds() + 0.5; while (cpu_seconds() < end) sink = 0, work(1); }
C
nm "$T/hot" | grep -q 'work\.cold' || skip 'this compiler sets nothing apart'
RATE=2000 sampled "$T/hot"
seen work rare
[[ $(ask "SELECT count(*) FROM function_total WHERE name LIKE '%cold%'") == 0 ]] || fail "samples: $(report functions)"
strip "$T/hot"
RATE=2000 sampled "$T/hot"
functions=$(ask "SELECT count(*) FROM function_total WHERE image = '$T/hot' AND self > 0")
((functions <= 4)) || fail "$functions functions of stripped code: $(report functions)"
