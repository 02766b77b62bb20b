# The summary of a sampled program has all that is documented of its sampling, and the sums agree.
. "$(dirname "$0")/lib.sh"
need jq
OPTIONS=--verify RATE=5000 sampled python3 -c 'print(sum(i * i for i in range(2000000)))'
report summary --format json >"$T/summary.json"
keys=$(sed -n '/^| `summary`/p' "$HERE/../../docs/report.md" | sed 's/.*else an object with//; s/, as \[store.md\].*//' | grep -o '`[a-z_]*`' | tr -d '`' | grep -v '^null$')
(($(wc -w <<<"$keys") >= 20)) || fail "docs/report.md lists: $keys"
for key in $keys truncated_by verify_differences_by; do jq -e ".sampling | has(\"$key\")" "$T/summary.json" >/dev/null || fail "no $key: $(jq .sampling "$T/summary.json")"; done
jq -e '.sampling | .samples > 0 and .frames >= .samples and .frames_unwound <= .frames and .truncated <= .samples and .verify_differences == 0 and .verify == 1
  and .event == "cpu" and .rate == 5000 and ([.truncated_by[]] | add // 0) == .truncated' "$T/summary.json" >/dev/null || fail "$(jq .sampling "$T/summary.json")"
[[ $(ask 'SELECT samples FROM sampling') == $(ask 'SELECT sum(self) FROM function_total') ]] || fail 'the samples of functions are not all'
[[ $(ask 'SELECT samples FROM sampling') == $(ask 'SELECT sum(self) FROM context') ]] || fail 'the samples of call paths are not all'
