# `weir report --check`: what must hold in a profile does, or each rule that does not is told, with exit status 1, in text and JSON.
. "$(dirname "$0")/lib.sh"
need sqlite3 python3
compile calls.c -O1 <<'C'
__attribute__((noipa)) int leaf(int n) { return n * 3; }
__attribute__((noipa)) int inner(int n) { return n ? leaf(n) + inner(n - 1) : 0; }
__attribute__((noipa)) int outer(int n) { return inner(n) + leaf(n) + 1; }
int main() { int s = 0; for (int i = 0; i < 100; i++) s += outer(i % 7); return s == 0; }
C
STATUS=0 OPTIONS=--paths=full profile "$T/calls"
"$WEIR" report --check "$T/run.weir" >"$T/text" || fail "$(<"$T/text")"
grep -q 'all that must hold does' "$T/text" || fail "$(<"$T/text")"
broken() {  # broken RULE SQL: the change is found
  cp "$T/run.weir" "$T/bad.weir"
  sqlite3 "$T/bad.weir" "$2"
  local status=0
  "$WEIR" report --check --format json "$T/bad.weir" >"$T/json" || status=$?
  [[ $status == 1 ]] || fail "$2: status $status: $(<"$T/json")"
  python3 - "$1" "$T/json" <<'P' || fail "$2: $(<"$T/json")"
import json, sys
j = json.load(open(sys.argv[2]))
rules = {r['rule']: r['broken'] for r in j['rules']}
assert rules[sys.argv[1]] and j['broken'] == sum(rules.values()) == len(j['findings']), rules
P
}
function="(SELECT id FROM function_total WHERE name = 'outer')"
broken possible "UPDATE function_count SET total = -5 WHERE function = $function"
broken possible "UPDATE call_count SET total = NULL WHERE callee = $function"
broken possible "UPDATE block_count SET thread = 77 WHERE block = (SELECT min(block) FROM block_count)"
broken nested "UPDATE function_count SET total = self - 1 WHERE function = $function"
broken nested "UPDATE function_count SET total = (SELECT cycles + 1 FROM thread) WHERE function = $function"
broken self "UPDATE thread SET cycles = cycles + 1"
broken blocks "UPDATE thread SET instructions = instructions - 1"
broken blocks "UPDATE block_count SET extra = extra + 1 WHERE block = (SELECT first_block FROM function WHERE id = $function)"
broken calls "UPDATE call_count SET calls = calls + 1 WHERE callee = $function"
broken calls "UPDATE function_count SET calls = calls - 1 WHERE function = $function"
broken children "UPDATE call_count SET total = total + 1 WHERE callee = $function; UPDATE function_count SET total = total + 1 WHERE function = $function"
broken spread "UPDATE function_count SET self_min = self_max + 1 WHERE function = $function"
broken spread "UPDATE function_count SET self_max = self + 1 WHERE function = $function"
broken paths "UPDATE context SET self = self + 1 WHERE function = $function"
# Of a process that went on while the profile was written, calls may be younger than blocks.
cp "$T/run.weir" "$T/on.weir"
sqlite3 "$T/on.weir" "UPDATE call_count SET total = total + 1 WHERE callee = $function; UPDATE function_count SET total = total + 1 WHERE function = $function"
sqlite3 "$T/on.weir" "UPDATE run SET complete = 0; UPDATE process SET ended_by = NULL"
"$WEIR" report --check "$T/on.weir" >"$T/text" || fail "$(<"$T/text")"
expect_fail 125 'whole file' "$WEIR" report --check "$T/run.weir" functions
expect_fail 125 'whole file' "$WEIR" report --check "$T/run.weir" --thread 0
