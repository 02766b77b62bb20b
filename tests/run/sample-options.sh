# Options that make no sense are refused before anything runs; those that do are in the profile.
. "$(dirname "$0")/lib.sh"
for options in '-F 0' '-F -5' '-F 100001' '-F x' '-F nan' '--confidence nan' '--confidence inf' '--clock=sun' '--unwind=magic' '--confidence 2' '--source=hope' '--seconds 1' \
  '-F 9 -e page-faults' '--clock=wall -e page-faults' '--event page-faults:-1' '-e page-faults --source=timer'; do
  expect_fail 125 "${options%%[= ]*}|frequency|range|pid|timers" "$WEIR" sample $options -- touch "$T/made"
  [[ ! -e $T/made ]] || fail "$options: the program ran"
done
expect_fail 125 'no program' "$WEIR" sample
for seconds in nan inf 0 -1 1e300; do expect_fail 125 'seconds takes' "$WEIR" sample --pid $$ --seconds $seconds; done
for rate in 1 20000; do RATE=$rate sampled seq 100; done
OPTIONS='--verify --unwind=fp --confidence 0.5' RATE=50 sampled seq 100
[[ $(ask 'SELECT event, rate, unwind, confidence, verify FROM sampling') == 'cpu|50.0|fp|50|1' ]] || fail "$(ask 'SELECT * FROM sampling')"
OPTIONS=--no-follow RATE=10000 sampled sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; /bin/echo $i; exec echo last'
[[ $(ask 'SELECT count(*) FROM process') == 1 ]] || fail "followed: $(ask 'SELECT * FROM process_word')"
