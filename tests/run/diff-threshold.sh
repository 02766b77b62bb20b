# issue 6, 3: the threshold is for code. A function whose code grew is found, whatever its OS time did; so is the one that grew most.
. "$(dirname "$0")/lib.sh"
need jq sqlite3
cd "$T"
"$(dirname "$WEIR")/tests/fixture_store" tables a.weir
sqlite3 a.weir 'UPDATE function_count SET os_time = os_time + 50000'
change() {  # change FUNCTION CODE OS_TIME
  sqlite3 b.weir "UPDATE function_count SET self = self + $2, os_time = os_time + $3 WHERE function =
    (SELECT f.id FROM function f JOIN string s ON s.id = f.name WHERE s.text = '$1')"
}
threshold() {  # threshold STATUS TEXT: of a.weir and b.weir, 5 %
  local status os
  for os in self separate; do
    status=0; "$WEIR" diff a.weir b.weir --threshold 5 --os-calls=$os >text || status=$?
    [[ $status == "$1" ]] && grep -q "$2" text || fail "status $status with $os, $(<text)"
  done
}
cp a.weir b.weir
for number in nan -nan inf -1 1e7 2x; do
  expect_fail 125 "threshold.*$number.*diff --help" "$WEIR" diff "$T/a.weir" "$T/b.weir" --threshold $number
done
threshold 0 'nothing grew'
change A 20000 -40000
threshold 1 'beyond 5 %: A grew by +19.78 % of the program'
"$WEIR" diff a.weir b.weir --format json | jq -e '.better[0].name == "A" and .worse == []' >/dev/null || fail "with OS time A is better"
change D 30000 0
threshold 1 'beyond 5 %: D grew by'
cp a.weir b.weir; change A 0 90000; threshold 0 'nothing grew'
cp a.weir b.weir; change A -1000 0; threshold 0 'nothing grew'
cp a.weir b.weir; change D 20000 0
"$WEIR" diff a.weir b.weir --threshold 5 --filter '^A$' >text || fail "another function than those that match: $(<text)"
