# A row that cannot be never costs the rest: it is told in one line, and everything else is shown, by report, view, diff and export.
. "$(dirname "$0")/lib.sh"
need sqlite3 python3
compile calls.c -O1 -g <<'C'
__attribute__((noipa)) int leaf(int n) { return n * 3; }
__attribute__((noipa)) int other(int n) { return leaf(n) + 1; }
int main() { int s = 0; for (int i = 0; i < 100; i++) s += leaf(i) + other(i); return s == 0; }
C
profile "$T/calls"
cp "$T/run.weir" "$T/good.weir"
sqlite3 "$T/run.weir" "
  UPDATE function_count SET total = 9223372036854775807 WHERE function = (SELECT id FROM function_total WHERE name = 'leaf');
  UPDATE function_count SET self = -7 WHERE function = (SELECT id FROM function_total WHERE name = 'other');
  UPDATE call_count SET total = 9223372036854775807 WHERE callee = (SELECT id FROM function_total WHERE name = 'leaf');"
told='2 rows of functions and 2 rows of calls have figures that cannot be'
for view in summary functions callers threads coverage oscalls 'detail main' 'detail leaf' 'source main' 'asm main'; do
  report $view >"$T/view" 2>&1
  grep -q "data: $told" "$T/view" || fail "$view: $(<"$T/view")"
done
shown() { report functions --format json --limit 0 | python3 -c "import json, sys; [print(f['name'], f['calls'], f['self'], f['total']) for f in json.load(sys.stdin)['functions'] if f['name'] in ('main', 'leaf', 'other')]" | sort; }
self() { sqlite3 "$T/good.weir" "SELECT $2 FROM function_total WHERE name = '$1'"; }
diff <(shown) - <<E || fail "functions"
leaf 200 $(self leaf self) 0
main 1 $(self main 'self || " " || total')
other 100 0 $(self other total)
E
for format in callgrind dot csv json html; do
  "$WEIR" export "$T/run.weir" --format "$format" -o "$T/out" 2>"$T/err" || fail "$format: $(<"$T/err")"
  [[ -s $T/out ]] || fail "$format is empty"
done
"$WEIR" export "$T/run.weir" --format callgrind -o "$T/out" 2>&1 | grep -q "^weir: .*run.weir: $told" || fail "export says nothing"
"$WEIR" diff "$T/good.weir" "$T/run.weir" >"$T/out" 2>"$T/err" || fail "$(<"$T/err")"
grep -q "^weir: .*run.weir: $told" "$T/err" || fail "diff says nothing"
view "$T/run.weir"
question summary | grep -q "$told" || fail "the page says nothing"
question functions >/dev/null || fail "the page has no functions"
stop_view
