# A sampled profile has the shares that `perf record` finds, within the sampling error of both, at a level of one false alarm in
# a million runs. See truth/shares.py.
. "$(dirname "$0")/lib.sh"
need python3 perf
export HOME=/dev/null  # (perf reads a configuration there)
build "$PROGRAMS/known_shares.c" "$T/known_shares" -fno-optimize-sibling-calls -pthread
run try perf record -q -e cpu-clock -F 1000 --call-graph dwarf -o "$T/try.data" true
[[ $(<"$T/try.status") == 0 ]] || skip "perf record does not work here: $(head -n 1 "$T/try.err")"
run perf perf record -q -e cpu-clock -F 1000 --call-graph dwarf,1024 -o "$T/perf.data" "$T/known_shares" 6000 3
run sampled "$WEIR" sample -q -F 1000 -o "$T/sampled.weir" -- "$T/known_shares" 6000 3
for name in perf sampled; do [[ $(<"$T/$name.status") == 0 ]] || fail "$name: $(<"$T/$name.err")"; done
run script perf script --no-inline -i "$T/perf.data" -F ip,sym
python3 -B "$HERE/../truth/shares.py" "$T/sampled.weir" "$T/script.out" || fail "the shares do not agree, or a wrong expectation was accepted"
