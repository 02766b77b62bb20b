# Of stacks that are very deep the middle is left out, so that an export is not as large as the square of their depth; no time is lost.
. "$(dirname "$0")/lib.sh"
need sqlite3 go python3
compile deep.c -fno-optimize-sibling-calls <<'C'
__attribute__((noinline)) int down(int n, volatile int* p) { if (n) down(n - 1, p); return *p += n; }
int main(void) { volatile int s = 0; down(5000, &s); return 0; }
C
OPTIONS=--paths=full profile "$T/deep"
cd "$T"
sum=$(ask 'SELECT sum(self + os_time) FROM context')
exported() {  # exported FORMAT: to $T/FORMAT
  "$WEIR" export run.weir --format "$1" -o "$1" 2>err || fail "$1: $(<err)"
  [[ $(wc -l <err) == 1 ]] && grep -Eq '^weir: 4,[0-9]{3} call paths are deeper than 1,000 functions' err || fail "$1: $(<err)"
}
exported folded; exported pprof; exported speedscope
awk -v sum="$sum" '{ total += $NF } END { if (total != sum) { print total, sum; exit 1 } }' folded || fail "another sum"
python3 - <<'P' || fail "folded"
import re
deepest = 0
for line in open('folded'):
    stack, _, _ = line.rpartition(' ')
    frames = stack.split(';')
    gaps = [i for i, f in enumerate(frames) if 'left out' in f]
    assert len(frames) <= 1001 and len(gaps) == (len(frames) == 1001) and gaps in ([], [500]), (len(frames), gaps)
    if gaps: deepest = max(deepest, int(re.fullmatch(r'\[(\d+) frames left out\]', frames[500])[1]))
assert 4000 < deepest < 4100, deepest
P
go tool pprof -top -nodefraction=0 pprof >top 2>/dev/null || fail "pprof"
grep -q "Total samples = $(ask 'SELECT sum(self) FROM context') *$" top || fail "pprof: another sum: $(head top)"
grep -q '\[4000 frames left out\]' top || fail "pprof: no gap"
python3 - "$sum" <<'P' || fail "speedscope"
import json, sys
j = json.load(open('speedscope'))
names = [f['name'] for f in j['shared']['frames']]
p = max(j['profiles'], key=lambda p: len(p['samples']))
assert sum(sum(p['weights']) for p in j['profiles']) == int(sys.argv[1])
assert all(len(s) <= 1001 for s in p['samples'])
assert '[4000 frames left out]' in {names[s[500]] for s in p['samples'] if len(s) == 1001}
P
