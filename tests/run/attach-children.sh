# What an attached process starts is followed, and let go of too.
. "$(dirname "$0")/lib.sh"
cat >"$T/loop.sh" <<'S'
echo ready
while read -t 0.01 -r line || (($? > 128)); do
  x=$(seq 20 | tr '\n' + | rev); [[ $x == +02+91+81+71+61+51+41+31+21+11+01+9+8+7+6+5+4+3+2+1 ]] || echo "wrong: $x"
done
sleep 0.3 & wait
echo over
S
start bash "$T/loop.sh"
is_followed() { [[ $(json 'len(j["processes"]) > 3 and any("/tr" in p["program"] for p in j["processes"])') == True ]]; }
# (Of a busy machine three tenths of a second may show less.)
for round in {1..40}; do
  "$WEIR" run -q --tool=icount --json "$T/count.json" --pid $P --seconds 0.3 2>"$T/err" || fail "round $round: status $?: $(<"$T/err")"
  if ((round >= 8)) && is_followed; then break; fi
done
is_followed || fail "not followed: $(json 'j["processes"]')"
finish
[[ $(<"$T/started.status") == 0 && $(tr '\n' ' ' <"$T/started.out") == 'ready over ' ]] || fail "$(<"$T/started.out")"
build "$PROGRAMS/busy.c" "$T/busy" -pthread
start "$T/busy" s; first=$P
"$T/busy" s <"$T/started.in" >"$T/second.out" 9>&- & second=$!
wait_for test -s "$T/second.out"
"$WEIR" run -q --tool=icount --json "$T/count.json" --pid $first,$second --seconds 0.3 || fail "two: status $?"
[[ $(json 'sorted(p["pid"] for p in j["processes"])') == "$(printf '[%s, %s]' $(printf '%s\n' $first $second | sort -n))" ]] || fail "two: $(json j)"
finish; wait $second || fail "the second: $?"
