# The browser that weir view starts has signals as any program, and Ctrl-C does not reach it.
. "$(dirname "$0")/lib.sh"
"$(dirname "$WEIR")/tests/fixture_store" tables "$T/a.weir"
mkdir "$T/bin"
cat >"$T/bin/xdg-open" <<E
#!/bin/bash
{ grep -E '^Sig(Blk|Ign)' /proc/\$\$/status; echo "\$1"; ps -o sid= -p \$\$; } >$T/seen.new; mv $T/seen.new $T/seen
E
chmod +x "$T/bin/xdg-open"
PATH=$T/bin:$PATH DISPLAY=:0 timeout -k 5 $LIMIT "$WEIR" view "$T/a.weir" >"$T/out" 2>"$T/err" & P=$!
wait_for test -s "$T/seen"
kill $P; wait $P || fail "view: $(<"$T/err")"
while read -r _ mask; do  # SIGINT, SIGPIPE, SIGTERM
  ((!(16#$mask & 16#5002))) || fail "signals: $(<"$T/seen")"
done < <(grep Sig "$T/seen")
grep -qxF "$(<"$T/out")" "$T/seen" || fail "the address: $(<"$T/seen")"
[[ $(tail -n 1 "$T/seen") -ne $(ps -o sid= -p $$) ]] || fail "it is in our session"
