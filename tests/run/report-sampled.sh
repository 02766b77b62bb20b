# spec 3, S9: every view of a sampled profile, as text, JSON and CSV; what samples cannot tell is said in one line.
. "$(dirname "$0")/lib.sh"
need jq python3
FIXTURE=$(dirname "$WEIR")/tests/fixture_store
"$FIXTURE" sampled "$T/s.weir"
"$FIXTURE" source sampled >"$T/spin.c"
report() { "$WEIR" report "$T/s.weir" "$@" --source-map "/src=$T" || fail "report $*"; }
for view in summary functions 'detail fib' callers 'source spin.c' 'source work' 'asm fib' tree threads; do
  # shellcheck disable=SC2086
  { report $view >"$T/text"; report $view --format json >"$T/json"; report $view --format csv >"$T/csv"; }
  grep -q '^data: 1,000 samples; 4.00 % cut off; 1.00 % of frames guessed; 3 lost; 2 late' "$T/text" || fail "$view: $(<"$T/text")"
  grep -q 'cycles' "$T/text" && fail "$view tells cycles: $(<"$T/text")"
  jq -e '.run | .clock == "samples" and .total == 1000' "$T/json" >/dev/null || fail "$view: $(head "$T/json")"
  jq -e '[.. | objects | .calls? | select(type == "number")] == []' "$T/json" >/dev/null || fail "$view tells calls: $(<"$T/json")"
  python3 -c "
import csv
rows = list(csv.reader(open('$T/csv', newline='')))
assert len(rows) > 1 and len(set(map(len, rows))) == 1, rows" || fail "$view: csv: $(head -n 3 "$T/csv")"
done
report --format json | jq -e '.sampling | .samples == 1000 and .frames == 2500 and .frames_unwound == 1200 and .frames_heuristic == 25
  and .truncated == 40 and .lost == 3 and .verify_differences == 2' >/dev/null || fail "sampling: $(report --format json)"
report functions --format json | jq -e '.functions[0] | .name == "fib" and .self == 490 and .self_seconds == 0.49' >/dev/null || fail "functions"
for view in oscalls coverage; do expect_fail 125 "$view: not in a sampled profile.*weir profile" "$WEIR" report "$T/s.weir" $view; done
expect_fail 125 'sort calls: not in a sampled' "$WEIR" report "$T/s.weir" functions --sort calls
expect_fail 125 'cpu: not in a sampled' "$WEIR" report "$T/s.weir" functions --cpu znver3
expect_fail 125 'os-calls.* no OS calls' "$WEIR" report "$T/s.weir" functions --os-calls=separate
# A file of schema 2, which knows of no samples.
"$FIXTURE" tables "$T/old.weir"
sqlite3 "$T/old.weir" 'DROP TABLE sampling; DROP TABLE sampling_reason; DROP TABLE leaf_count; UPDATE weir SET schema = 2; PRAGMA user_version = 2'
[[ $("$WEIR" report "$T/old.weir" --format json | jq -c '[.sampling, .run.total]') == '[null,101100]' ]] || fail "schema 2"
