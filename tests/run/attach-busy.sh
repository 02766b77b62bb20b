# Threads that compute, wait, sleep, read, ask the vDSO, handle signals, are created, end and fork: twenty times into the
# cache and out again, and nothing of ours is left.
. "$(dirname "$0")/lib.sh"
build "$PROGRAMS/busy.c" "$T/busy" -pthread
start "$T/busy" cpsrvthk
state >"$T/before"
is_as_before() { state >"$T/after"; diff "$T/before" "$T/after" >"$T/left"; }
for round in {1..20}; do
  "$WEIR" run -q --tool=icount --pid $P --seconds 0.1 2>"$T/err" || fail "round $round: status $?: $(<"$T/err")"
  wait_for is_as_before || fail "round $round: something is left: $(<"$T/left")"  # (while a handler runs its signal is blocked)
done
finish
[[ $(<"$T/started.status") == 0 && $(tail -n 1 "$T/started.out") == 'wrong 0' ]] || fail "it ended so: $(<"$T/started.status") $(<"$T/started.out")"
