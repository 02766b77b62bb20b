# A process that executes another program is one process, and two programs; both can be asked for by name; threads can be sorted.
. "$(dirname "$0")/lib.sh"
need sqlite3 jq
long=$(printf 'x%.0s' {1..500})
profile sh -c "/bin/true; /bin/true $long; exec /bin/echo done"
report threads >"$T/text"
head -n 1 "$T/text" | grep -qx '3 threads in 3 processes, which ran 4 programs' || fail "$(<"$T/text")"
[[ $(report summary --format json | jq -c '[.processes, .programs]') == '[3,4]' ]] || fail "$(report summary)"
awk 'length($0) > 250 { exit 1 }' "$T/text" || fail "a command of 500 characters: $(<"$T/text")"
report threads --format json | jq -e '[.threads[].command | length] | max > 500' >/dev/null || fail "JSON is cut"
report threads --format json | jq -e '[.threads[] | .cycles + .os_time] | . == (sort | reverse)' >/dev/null || fail "not the largest first"
report threads --sort pid --format json | jq -e '[.threads[].pid] | . == sort' >/dev/null || fail "--sort pid"
expect_fail 125 'threads can be sorted by' "$WEIR" report "$T/run.weir" threads --sort colour
for name in true echo; do
  pids=$(ask "SELECT count(*) FROM process_word WHERE kind = 'program' AND text LIKE '%/$name'")
  [[ $(report threads --process $name --format json | jq '.threads | length') == "$pids" && $pids != 0 ]] || fail "--process $name"
done
[[ $(report summary --process echo --format json | jq -c '[.processes, .programs]') == '[1,1]' ]] || fail "a program that was executed"
[[ $(report threads --thread true --format json | jq '.threads | length') == 2 ]] || fail "--thread NAME"
expect_fail 125 "no process nobody; see: weir report .* threads" "$WEIR" report "$T/run.weir" --process nobody
"$WEIR" export "$T/run.weir" --format csv --process echo -o "$T/csv" && [[ -s $T/csv ]] || fail "export --process NAME"
[[ $(report summary --format json | jq -c "[.threads, .processes]") == "[3,3]" ]] || fail "threads: $(report summary --format json)"
# Of samples a process may have been met when it had executed its program already: what it runs is a program, if it is not its parent's.
ask "DELETE FROM thread WHERE process IN (SELECT id FROM process WHERE parent IS NOT NULL AND ended_by = 'exec');
     DELETE FROM process WHERE parent IS NOT NULL AND ended_by = 'exec'"
[[ $(report summary --format json | jq -c '[.threads, .processes, .programs]') == '[3,3,4]' ]] || fail "met late: $(report summary --format json)"
