# Sampled runs of different rates are compared by time; what samples do not tell is null.
. "$(dirname "$0")/lib.sh"
need jq python3 sqlite3
cd "$T"
"$(dirname "$WEIR")/tests/fixture_store" sampled s.weir
cp s.weir fast.weir  # ten times the samples, at ten times the rate
sqlite3 fast.weir "UPDATE sampling SET rate = rate * 10; UPDATE run SET cycles_per_second = cycles_per_second * 10;
  UPDATE thread SET cycles = cycles * 10; UPDATE function_count SET self = self * 10, total = total * 10;
  UPDATE call_count SET total = total * 10; UPDATE context SET self = self * 10, total = total * 10"
for pair in 's.weir fast.weir 10' 'fast.weir s.weir 0.1'; do
  read -r old new scale <<<"$pair"
  "$WEIR" diff $old $new --format json --threshold 1 >json || fail "$pair: status $?: $(<json)"
  jq -e --argjson scale "$scale" '.worse == [] and .better == [] and .new == [] and .gone == [] and .scale == $scale
    and .before.total == .now.total and .now.os_time == null' json >/dev/null || fail "$pair: $(<json)"
  "$WEIR" diff $old $new | grep -q "multiplied by $scale" || fail "it is not told"
  view "$T/$new" --diff "$T/$old"
  question functions | jq -e 'all(.rows[]; .before.self == .self and .before.total == .total and .calls == null and .os_time == null)' >/dev/null ||
    fail "functions: $(question functions)"
  question flame | jq -e '[.total, .before] | transpose | all(.[]; (.[0] - .[1] | fabs) <= 1)' >/dev/null || fail "flame: $(question flame)"
  question summary | jq -e '.compared.total == .total and (.blocks_known | not)' >/dev/null || fail "summary: $(question summary)"
  question coverage >answer && fail "coverage of samples"
  stop_view
done
sqlite3 s.weir "UPDATE function_count SET self = self + 10 WHERE function = (SELECT max(function) FROM function_count)"
"$WEIR" diff fast.weir s.weir --format json >json
jq -e '.worse == [] and (.unclear | length == 1 and .[0].calls == null and .[0].calls_before == null)' json >/dev/null || fail "calls: $(<json)"
"$WEIR" export s.weir --format html -o s.html --diff fast.weir || fail "export"

# Runs without a sample: nothing was compared, which must not look like a pass; and the summary says what to do.
cd "$T"
for i in 1 2; do "$WEIR" sample -q -F 1 -o none$i.weir -- /bin/true; done
"$WEIR" diff none1.weir none2.weir --threshold 5 | head -n 1 | grep -q '^the threshold was not tried: nothing was compared.*weir sample -F' || fail "$("$WEIR" diff none1.weir none2.weir --threshold 5)"
"$WEIR" diff none1.weir none2.weir none1.weir : none2.weir none2.weir | head -n 1 | grep -q '^nothing was compared' || fail 'several'
"$WEIR" report none1.weir | grep -q '^no sample: .*next: weir sample -F 20000 -- /bin/true' || fail "$("$WEIR" report none1.weir)"
