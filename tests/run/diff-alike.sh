# What one side of a comparison cannot tell, inlined functions, the kind of OS time, is compared as it can, and a note says so.
. "$(dirname "$0")/lib.sh"
need strip jq
compile plain.cc -g <<'C'
#include <cstdio>
volatile int n;
static inline __attribute__((always_inline)) int part(int i) { n += i; return n % 7; }
__attribute__((noinline)) int whole(int i) { return part(i) + 1; }
int main() { int s = 0; for (int i = 0; i < 1000; i++) s += whole(i); printf("%d\n", s); }
C
strip -g -o "$T/stripped" "$T/plain"
profile "$T/plain"; mv "$T/run.weir" "$T/plain.weir"
OPTIONS=--os-model=classes profile "$T/stripped"; mv "$T/run.weir" "$T/stripped.weir"
for sides in 'plain stripped' 'stripped plain'; do
  read -r a b <<<"$sides"
  "$WEIR" diff "$T/$a.weir" "$T/$b.weir" --limit 0 --no-pager >"$T/diff" || fail "diff $sides"
  grep -q 'inlined functions are part of their callers: [^ ]*stripped has no debug information' "$T/diff" || fail "$sides: no note: $(<"$T/diff")"
  grep -q 'os-model=classes' "$T/diff" || fail "$sides: nothing of the models: $(<"$T/diff")"
  ! grep -Eq '(whole|part).*new|new.*(whole|part)' "$T/diff" || fail "$sides: $(<"$T/diff")"
done
view "$T/plain.weir" --diff "$T/stripped.weir"
question 'functions?limit=100&filter=whole' | jq -e '.rows[] | select(.name == "whole(int)") | .before.self == .self' >/dev/null || fail "$(question 'functions?limit=9&filter=whole')"
question 'functions?limit=100&filter=part' | jq -e '[.rows[] | select(.name == "part")] == []' >/dev/null || fail 'part is a function of its own'
stop_view
expect_fail 125 'takes no view' "$WEIR" report "$T/plain.weir" --check --with-waits
"$WEIR" report "$T/plain.weir" threads --sort waited --no-pager >"$T/out" && "$WEIR" report "$T/plain.weir" functions --sort inlined --limit 1 --no-pager | grep -q part || fail 'sorting'
