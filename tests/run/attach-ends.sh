# What ends an attachment: time, Ctrl-C, SIGTERM, a process that ends by itself. The counts are written each time.
. "$(dirname "$0")/lib.sh"
build "$PROGRAMS/busy.c" "$T/busy" -pthread
start "$T/busy" cs
for signal in INT TERM HUP; do
  "$WEIR" run -q --tool=icount --json "$T/count.json" --pid $P 9>&- & weir=$!
  wait_for is_attached $P && works $P
  kill -$signal $weir
  wait $weir || fail "$signal: status $?"
  [[ $(json 'j["instructions"] > 100000 and len(j["threads"]) >= 4') == True ]] || fail "$signal: $(json j)"
  ! grep -q memfd:weir /proc/$P/maps || fail "$signal: still attached"
done
"$WEIR" run -q --tool=icount --json "$T/count.json" --pid $P 9>&- & weir=$!
wait_for is_attached $P && works $P
finish
wait $weir || fail "it ended: status $?"
[[ $(json 'j["instructions"] > 100000') == True ]] || fail "it ended: $(json j)"
[[ $(<"$T/started.status") == 0 && $(tail -n 1 "$T/started.out") == 'wrong 0' ]] || fail "$(<"$T/started.out")"
