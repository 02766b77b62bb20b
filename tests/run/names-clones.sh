# A clone that a compiler made of a function has the author's name, with its mark; it is found by that name, and --merge-clones adds it up: calls and times are
# those of the same program compiled without clones.
. "$(dirname "$0")/lib.sh"
need sqlite3 python3
cat >"$T/clones.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
int sink;
static __attribute__((noinline)) int work(int x, int kind) {
  int s = 0;
  for (int i = 0; i < 20; i++) s += kind == 3 ? x * i : (x ^ i) + kind + sink;
  return s;
}
static __attribute__((noinline)) int other(int x, int kind) { sink += work(x, kind); return sink & kind; }
int main(int argc, char **argv) {
  int t = 0;
  for (int i = 0; i < 1000; i++) t += work(i, 3) + other(i, argc + 1);
  printf("%d\n", t);
}
C
build "$T/clones.c" "$T/clones" -fipa-cp-clone -O3 -fno-inline
build "$T/clones.c" "$T/plain" -fno-ipa-cp -fno-ipa-sra -fno-partial-inlining -fno-inline
nm "$T/clones" | grep -q ' work\.constprop' || skip 'this compiler makes no clone'
calls_of() { python3 -c "
import json, sys
print(sum(f['calls'] for f in json.load(sys.stdin)['functions'] if f['name'] == 'work' or ($1 and f['name'].startswith('work ['))))"; }
profile "$T/plain"
truth=$(report functions --limit 0 --format json | calls_of False)
[[ $truth == 2000 ]] || fail "$truth calls without clones"
profile "$T/clones"
[[ $(ask "SELECT count(*) > 0 FROM function f JOIN string n ON n.id = f.name WHERE n.text LIKE 'work [constprop.%]' AND f.clone LIKE 'constprop.%'") == 1 ]] ||
  fail "no clone has its mark: $(report functions --limit 0)"
[[ $(report functions --limit 0 --filter '^work$' --format json | calls_of True) == 2000 ]] || fail 'the filter does not find the clones by name'
nm "$T/clones" | grep -q ' work$' || exit 0  # only one is left, there is nothing to add up
report functions --limit 0 --merge-clones >"$T/merged"
[[ $(report functions --limit 0 --merge-clones --format json | calls_of False) == 2000 ]] || fail "added up: $(<"$T/merged")"
! grep -q 'work \[' "$T/merged" || fail "a clone is left: $(<"$T/merged")"
