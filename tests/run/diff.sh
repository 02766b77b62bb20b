# What became worse, apart from what became better; JSON and CSV; exit status 1 beyond a threshold; the last file and its .old.
. "$(dirname "$0")/lib.sh"
need jq
compile work.c -g <<'C'
#include <stdlib.h>
__attribute__((noinline)) int slow(int n) { volatile int s = 0; for (int i = 0; i < n; i++) s += i; return s; }
__attribute__((noinline)) int quick(int n) { volatile int s = 0; for (int i = 0; i < n; i++) s ^= i; return s; }
__attribute__((noinline)) int added(int n) { volatile int s = n; return s; }
int main(int argc, char** argv) {
  int a = atoi(argv[1]), b = atoi(argv[2]);
  return (slow(a) + quick(b) + (argc > 3 ? added(1) : 0)) & 0;
}
C
cd "$T"
"$WEIR" profile -q -o a.weir -- ./work 10000 20000
"$WEIR" profile -q -o a.weir -- ./work 30000 5000 x
"$WEIR" diff >text || fail "no arguments: the last file and its .old"
diff text <("$WEIR" diff a.weir.old a.weir) || fail "it compares others"
grep -q '^a.weir.old → a.weir' text || fail "$(<text)"
"$WEIR" diff a.weir.old a.weir --format json >json
[[ $(jq -r '.worse[0].name, .better[0].name' json | tr '\n' ' ') == 'slow quick ' ]] || fail "$(<json)"
jq -e '.new | any(.name == "added" and .calls == 1 and .calls_before == 0)' json >/dev/null || fail "new: $(<json)"
jq -e '.worse | all(.self > .self_before)' json >/dev/null && jq -e '.better | all(.self < .self_before)' json >/dev/null || fail "mixed"
[[ $("$WEIR" diff a.weir.old a.weir --format csv | head -n 1) == kind,share,* ]] || fail "csv"
status=0; "$WEIR" diff a.weir.old a.weir --threshold 5 >text || status=$?
[[ $status == 1 ]] && grep -q 'beyond the threshold of 5 %: slower by' text || fail "threshold: $status $(<text)"
"$WEIR" diff a.weir a.weir --threshold 0 >text || fail "the same run is beyond 0 %"
grep -q '^within the threshold of 0 %: the same' text || fail "$(<text)"
"$WEIR" diff a.weir a.weir.old --threshold 1 >text || fail "the whole became faster: $(<text)"
head -n 1 text | grep -q 'within the threshold of 1 %: faster by' || fail "the verdict is not the first line: $(<text)"
status=0; "$WEIR" diff a.weir a.weir.old --threshold 1% --per-function >text || status=$?
[[ $status == 1 ]] && grep -q 'quick grew by' text || fail "one function that grew: $status $(<text)"
"$WEIR" profile -q --clock=instructions -o i.weir -- ./work 10 10
expect_fail 125 'same --clock' "$WEIR" diff "$T/a.weir" "$T/i.weir"
cd / && expect_fail 125 "no profile here has an older one" "$WEIR" diff
