# A sampled profile has the shares of an exact one, within sampling error, at a level of one false alarm in a million runs:
# the twenty largest functions, by themselves and with what they call, and the ten largest call paths. See truth/shares.py.
. "$(dirname "$0")/lib.sh"
need python3
build "$PROGRAMS/known_shares.c" "$T/known_shares" -fno-optimize-sibling-calls -pthread
run sampled "$WEIR" sample -q -F 5000 -o "$T/sampled.weir" -- "$T/known_shares" 6000 3
run exact "$WEIR" profile -q --paths=full -o "$T/exact.weir" -- "$T/known_shares" 6000 3
for name in sampled exact; do [[ $(<"$T/$name.status") == 0 ]] || fail "$name: $(<"$T/$name.err")"; done
python3 -B "$HERE/../truth/shares.py" "$T/sampled.weir" "$T/exact.weir" || fail "the shares do not agree, or a wrong expectation was accepted"
