# A process that does everything at once, and ignores SIGTRAP itself: attached to and left, and its results are right.
. "$(dirname "$0")/lib.sh"
build "$PROGRAMS/busy.c" "$T/busy" -pthread
start "$T/busy" cpsrvthk
state >"$T/before"
for round in {1..10}; do
  timeout -k 5 $LIMIT "$WEIR" sample -q -F 5000 --pid $P --seconds 0.1 -o "$T/run.weir" 2>"$T/err" || fail "round $round: status $?: $(<"$T/err")"
  for attempt in {1..20}; do  # (it may be in a handler of its own, which blocks signals)
    state >"$T/after"
    cmp -s "$T/before" "$T/after" && continue 2
  done
  diff "$T/before" "$T/after" || fail "round $round: something is left"
done
seen compute
finish
[[ $(<"$T/started.status") == 0 && $(tail -n 1 "$T/started.out") == 'wrong 0' ]] || fail "it ended so: $(<"$T/started.status") $(<"$T/started.out")"
