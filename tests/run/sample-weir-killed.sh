# Weir is killed with SIGKILL: a process that it was attached to goes on, and so does what it started.
. "$(dirname "$0")/lib.sh"
build "$PROGRAMS/busy.c" "$T/busy" -pthread
for options in --clock=cpu --clock=wall --source=timer; do
  start "$T/busy" cpsrvt
  "$WEIR" sample -q -F 5000 $options --pid $P -o "$T/run.weir" 2>"$T/err" & weir=$!
  until grep -q memfd:weir /proc/$P/maps; do sleep 0.02; kill -0 $weir || fail "it does not attach: $(<"$T/err")"; done
  works $P 20
  kill -KILL $weir; wait $weir || true
  works $P 20
  kill -0 $P || fail "$options: the process has died"
  finish
  [[ $(<"$T/started.status") == 0 && $(tail -n 1 "$T/started.out") == 'wrong 0' ]] || fail "$options: it ended so: $(<"$T/started.status") $(<"$T/started.out")"
done
