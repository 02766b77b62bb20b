# The page compares what can be compared: not other clocks or kinds, not a thread with the run, not paths with none.
. "$(dirname "$0")/lib.sh"
need jq python3 sqlite3
FIXTURE=$(dirname "$WEIR")/tests/fixture_store
for kind in tables rich sampled; do "$FIXTURE" $kind "$T/$kind.weir"; done
cd "$T"
cp tables.weir other.weir; sqlite3 other.weir "UPDATE run SET clock = 'instructions'"
cp sampled.weir wall.weir; sqlite3 wall.weir "UPDATE sampling SET event = 'wall'"
refuses() {  # refuses WHY OLD NEW
  expect_fail 125 "$1" "$WEIR" diff "$T/$2" "$T/$3"
  expect_fail 125 "$1" "$WEIR" view --no-open "$T/$3" --diff "$T/$2"
  expect_fail 125 "$1" "$WEIR" export "$T/$3" --format html -o x.html --diff "$T/$2"
}
refuses 'same --clock' other.weir tables.weir
refuses 'cannot be compared' tables.weir sampled.weir
refuses 'samples of wall.*of cpu' wall.weir sampled.weir
# Threads: those with a name of their own have one to be compared with.
cp rich.weir old.weir
sqlite3 old.weir "UPDATE thread SET name = 'another' WHERE id = 1"
view "$T/rich.weir" --diff "$T/old.weir"
question summary >summary
jq -e '.compared.threads | index(0) != null and index(1) == null' summary >/dev/null || fail "$(<summary)"
question 'functions?thread=0' | jq -e '.count > 0 and all(.rows[]; .before.self == .self)' >/dev/null || fail "a thread and itself: $(question 'functions?thread=0')"
question 'functions?thread=1' | jq -e '.count > 0 and all(.rows[]; has("before") | not)' >/dev/null || fail "a thread and the run"
question 'summary?thread=1' | jq -e '.compared == null' >/dev/null || fail "summary of a thread"
question 'changes?thread=1' >answer && fail "$(<answer)"
grep -q 'this thread is compared with none' answer || fail "$(<answer)"
stop_view
# Paths with a run that has none.
cp tables.weir flat.weir; sqlite3 flat.weir 'DELETE FROM context'
view "$T/tables.weir" --diff "$T/flat.weir"
question flame | jq -e 'has("before") | not' >/dev/null || fail "flame: $(question flame)"
question summary | jq -e '(.compared.paths_known | not) and any(.notes[]; test("no call paths"))' >/dev/null || fail "$(question summary)"
stop_view
