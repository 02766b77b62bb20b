# issue 4, 4: a process that holds the guardian's pipe, which it found in /proc/WEIR/fd, and outlives the program, does not keep Weir
# from ending; nor from being missed when it is killed.
. "$(dirname "$0")/lib.sh"
cat >"$T/hold.sh" <<'S'
for fd in /proc/$PPID/fd/*; do [ ! -p "$fd" ] || exec 9>"$fd"; done
setsid sleep 8 <&- >&- 2>&- & echo $! >"$1/holder"
[ -z "$2" ] || { mv "$1/holder" "$1/ready"; exec sleep 60 9>&-; }
S
SECONDS=0
"$WEIR" run --no-follow -- sh "$T/hold.sh" "$T"
((SECONDS < 6)) || fail "Weir waited for $SECONDS seconds"
[[ -d /proc/$(<"$T/holder") ]] || fail 'nobody held it'
"$WEIR" run -- sh "$T/hold.sh" "$T" wait & weir=$!
for ((n = 0; n < 100; n++)); do [[ -e $T/ready ]] && program=$(pgrep -P $weir -x sleep) && break; sleep 0.1; done
kill -KILL $weir; wait $weir || true
for ((n = 0; n < 40; n++)); do [[ -d /proc/$program ]] || break; sleep 0.1; done
((n < 40)) || fail 'the program goes on'
