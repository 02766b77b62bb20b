# Profiles that no Weir wrote: answered or refused, and nothing waits for ever.
. "$(dirname "$0")/lib.sh"
need jq python3
FIXTURE=$(dirname "$WEIR")/tests/fixture_store
changed() { "$FIXTURE" rich "$T/a.weir"; sqlite3 "$T/a.weir" "$1"; }
# A function with the number of nobody, the largest.
for id in 4294967295 -1; do
  changed "UPDATE function SET id = $id WHERE id = (SELECT id FROM function_total ORDER BY total DESC LIMIT 1); UPDATE function_count SET function = $id WHERE function NOT IN (SELECT id FROM function)"
  view "$T/a.weir"
  question graph | jq -e '.nodes | length > 1' >/dev/null || fail "graph"
  question functions >/dev/null || fail "functions"
  stop_view
  "$WEIR" export "$T/a.weir" --format html -o "$T/a.html" || [[ $? == 125 ]] || fail "export"
done
# A view in the place of a table, that has no end.
for table in weir source function; do
  changed "PRAGMA writable_schema = 1; DROP TABLE $table; CREATE VIEW $table AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id, 'x' AS kind, i AS file FROM n"
  expect_fail 125 'missing: the file is damaged' timeout -k 5 $LIMIT "$WEIR" report "$T/a.weir" summary
done
# The file of a source is whatever the profile says: it is shown on this machine, and not given away.
echo secret >"$T/secret"
changed "UPDATE string SET text = '$T/secret' WHERE text = '/src/rich.cc'"
"$WEIR" export "$T/a.weir" --format html -o "$T/a.html"
python3 - "$T/a.html" <<'P' || fail "a file that is no source of the run is in the page"
import base64, gzip, re, sys
data = gzip.decompress(base64.b64decode(re.search(r'id="weir-data">([^<]*)<', open(sys.argv[1]).read()).group(1)))
sys.exit(b'"secret"' in data or b'is not in this file' not in data)
P
