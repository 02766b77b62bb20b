# The threshold is for code. A function whose code grew is found, whatever its OS time did; so is the one that grew most.
. "$(dirname "$0")/lib.sh"
need jq sqlite3
cd "$T"
"$(dirname "$WEIR")/tests/fixture_store" tables a.weir
sqlite3 a.weir 'UPDATE function_count SET os_time = os_time + 50000'
change() {  # change FUNCTION CODE OS_TIME
  sqlite3 b.weir "UPDATE function_count SET self = self + $2, os_time = os_time + $3 WHERE function =
    (SELECT f.id FROM function f JOIN string s ON s.id = f.name WHERE s.text = '$1');
    UPDATE thread SET cycles = cycles + $2, os_time = os_time + $3"
}
threshold() {  # threshold STATUS TEXT [OPTION...]: of a.weir and b.weir, 5 %
  local status os
  for os in self separate; do
    status=0; "$WEIR" diff a.weir b.weir --threshold 5 --os-calls=$os "${@:3}" >text || status=$?
    [[ $status == "$1" ]] && grep -q "$2" text || fail "status $status with $os, $(<text)"
  done
}
cp a.weir b.weir
for number in nan -nan inf -1 1e7 2x % 5%%; do
  expect_fail 125 "threshold.*$number is no percentage.*say 5 or 5%.*diff --help" "$WEIR" diff "$T/a.weir" "$T/b.weir" --threshold $number
done
threshold 0 '^within the threshold of 5 %: the same'
change A 20000 -40000
threshold 1 '^beyond the threshold of 5 %: slower by 19.78 %'
threshold 1 'A grew by +19.78 % of the program' --filter '^A$'
for five in 5% '5 %' 5.0; do
  status=0; "$WEIR" diff a.weir b.weir --threshold "$five" >text || status=$?
  [[ $status == 1 ]] || fail "--threshold $five: $status"
done
"$WEIR" diff a.weir b.weir --format json >json
jq -e '.worse[0].name == "A" and .better == [] and .worse[0].os_time == .worse[0].os_time_before - 40000' json >/dev/null || fail "less OS time makes no code better: $(<json)"
# What one function lost another gained: the whole is the same, and functions are judged where that is asked for.
cp a.weir b.weir; change A 20000 0; change D -20000 0
threshold 0 '^within the threshold of 5 %: the same'
threshold 1 '^beyond the threshold of 5 %: A grew by' --per-function
cp a.weir b.weir; change A 0 90000; threshold 0 'the same'
cp a.weir b.weir; change A -1000 0; threshold 0 'faster by'; threshold 0 'faster by' --per-function
cp a.weir b.weir; change D 20000 0
"$WEIR" diff a.weir b.weir --threshold 5 --filter '^A$' >text || fail "another function than those that match: $(<text)"
