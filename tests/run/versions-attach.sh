# A process that runs already: threads change versions, and are let go of from either. Threads compute, wait, sleep, read, handle signals, are created
# and fork.
. "$(dirname "$0")/lib.sh"
build "$PROGRAMS/busy.c" "$T/busy" -pthread
start "$T/busy" cpsrvthk
state >"$T/before"
is_as_before() { state >"$T/after"; diff "$T/before" "$T/after" >"$T/left"; }
moved=0
for round in {1..10}; do
  "$VERSIONS" --pid $P --seconds 0.3 --probes 4 --moves 500 --seed $round --json "$T/count.json" 2>"$T/err" || fail "round $round: status $?: $(<"$T/err")"
  wait_for is_as_before || fail "round $round: something is left: $(<"$T/left")"
  moved=$((moved + $(json 'j["moved"]')))
done
finish
[[ $(<"$T/started.status") == 0 && $(tail -n 1 "$T/started.out") == 'wrong 0' ]] || fail "it ended so: $(<"$T/started.status") $(<"$T/started.out")"
((moved > 100)) || fail "threads were moved $moved times"
