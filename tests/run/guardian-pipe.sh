# A process that holds the guardian's pipe, which it found in /proc/WEIR/fd, and outlives the program, does not keep Weir
# from ending; nor from being missed when it is killed.
. "$(dirname "$0")/lib.sh"
cat >"$T/hold.sh" <<'S'
for fd in /proc/$PPID/fd/*; do [ ! -p "$fd" ] || exec 9>"$fd"; done
setsid sleep 600 <&- >&- 2>&- & echo $! >"$1/holder"
[ -z "$2" ] || { mv "$1/holder" "$1/ready"; exec sleep 600 9>&-; }
S
timeout $LIMIT "$WEIR" run --no-follow -- sh "$T/hold.sh" "$T" || fail "Weir waits: status $?"
kill "$(<"$T/holder")" || fail 'nobody held it'
"$WEIR" run -- sh "$T/hold.sh" "$T" wait & weir=$!
is_ready() { [[ -e $T/ready ]] && program=$(pgrep -P $weir -x sleep); }
wait_for is_ready
kill -0 "$(<"$T/ready")" || fail 'nobody holds it'
kill -KILL $weir; wait $weir || true
wait_for is_gone $program || fail 'the program goes on'
kill "$(<"$T/ready")" 2>/dev/null || true  # (the guardian has ended it, too, if it was followed by then)
