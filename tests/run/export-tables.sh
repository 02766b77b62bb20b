# CSV of all functions and JSON of every view, as files.
. "$(dirname "$0")/lib.sh"
need jq python3 sqlite3
FIXTURE=$(dirname "$WEIR")/tests/fixture_store
"$FIXTURE" rich "$T/r.weir"
"$WEIR" export "$T/r.weir" --format csv -o "$T/r.csv"
diff "$T/r.csv" <("$WEIR" report "$T/r.weir" functions --format csv --os-calls=self) || fail "CSV differs from the report"
"$WEIR" export "$T/r.weir" --format json -o "$T/r.json"
[[ $(jq -r 'keys | join(" ")' "$T/r.json") == 'callers coverage functions oscalls summary threads tree' ]] || fail "$(jq keys "$T/r.json")"
rows=$(python3 -c "import csv; print(len(list(csv.reader(open('$T/r.csv', newline='')))) - 1)")
[[ $(jq '.functions.functions | length' "$T/r.json") == "$rows" ]] || fail "not as many functions in JSON as in CSV"
[[ $(jq '[.threads.threads[].cycles] | add' "$T/r.json") == 7547 ]] || fail "threads"
# Names of any bytes: UTF-8 all the same.
sqlite3 "$T/r.weir" "UPDATE string SET text = CAST(X'66ff2c' AS TEXT) WHERE id = (SELECT name FROM function WHERE id = (SELECT max(function) FROM function_count))"
"$WEIR" export "$T/r.weir" --format csv -o "$T/r.csv"
python3 -c "
import csv
assert any('f\ufffd,' in row for row in csv.reader(open('$T/r.csv', encoding='utf-8', newline='')))" || fail "a name of other bytes"
