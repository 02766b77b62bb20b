# Cycles of a model are never seconds, as no clock showed them; by the clock of instructions every time is a number of them, and there is one total.
. "$(dirname "$0")/lib.sh"
need sqlite3 jq perl
script='my $n = 0; $n += $_ % 7 for 1 .. 20000; open my $f, "<", "/etc/passwd"; my @l = <$f>; print "$n\n"'
profile perl -e "$script"
report >"$T/text"
grep -Eq '^  total .* cycles = code \+ OS calls$' "$T/text" || fail "the total of a model is said to be a time: $(<"$T/text")"
grep -Eq '^    code .*[0-9] m?s' "$T/text" && fail "code has seconds: $(<"$T/text")"
grep -Eq '^  measured  +[0-9.]+ s wall, [0-9.]+ s CPU \([0-9.]+ user, [0-9.e-]+ system\)' "$T/text" || fail "no processor time: $(<"$T/text")"
report summary --format json >"$T/json"
jq -e '.user_seconds > 0 and .system_seconds >= 0 and .user_seconds + .system_seconds < 60' "$T/json" >/dev/null || fail "$(jq .user_seconds "$T/json")"
report oscalls | grep -Eq 'OS calls.* took .* cycles \([0-9.]+ (s|ms|µs)\)' || fail "OS calls are measured, and have no seconds: $(report oscalls)"

OPTIONS='--clock=instructions --paths=full' profile perl -e "$script"
for view in '' functions tree 'detail main' threads; do
  # shellcheck disable=SC2086
  report $view >"$T/text"
  # (Waiting is measured: on a busy machine there is a column of it.)
  sed -E 's/ <?[0-9]+\.[0-9]{3} s / /' "$T/text" | grep -E '[0-9]( [kMG])? cycles|[0-9] (m|µ)?s[ ,)]' | grep -Ev 'measured|^ *waited' && fail "'$view' of instructions: $(<"$T/text")"
done
report summary --format json >"$T/json"
jq -e '.run.total == .run.instructions and .run.cycles == .run.total' "$T/json" >/dev/null || fail "two totals: $(jq .run "$T/json")"
[[ $(report functions --format json | jq '[.functions[].self] | add') == $(jq .run.instructions "$T/json") ]] || fail "the functions have another sum"
answers 'SELECT sum(time) > 0 FROM os_count' <<<1
