# What is no profile, and questions without an answer: one clear line, with a remedy, and 125.
. "$(dirname "$0")/lib.sh"
FIXTURE=$(dirname "$WEIR")/tests/fixture_store
"$FIXTURE" tables "$T/a.weir"
expect_fail 125 'No such file.*weir profile -o .*none.weir' "$WEIR" report "$T/none.weir"
expect_fail 125 'is not a file' "$WEIR" report "$T"
echo hello >"$T/text"
expect_fail 125 'not a Weir profile .*weir profile' "$WEIR" report "$T/text"
head -c 20000 "$T/a.weir" >"$T/short.weir"
expect_fail 125 'cut short: 20000 of' "$WEIR" report "$T/short.weir"
expect_fail 125 "no view 'nonsense'.* functions" "$WEIR" report "$T/a.weir" nonsense
expect_fail 125 "no function is named 'nonsense'.*--filter" "$WEIR" report "$T/a.weir" detail nonsense
expect_fail 125 'which function' "$WEIR" report "$T/a.weir" detail
expect_fail 125 "no column 'nonsense'.* self" "$WEIR" report "$T/a.weir" functions --sort nonsense
expect_fail 125 "'tree' has no use" "$WEIR" report "$T/a.weir" tree --sort self
expect_fail 125 "'threads' has no use" "$WEIR" report "$T/a.weir" threads main
expect_fail 125 'sorted by total, calls or waited_total' "$WEIR" report "$T/a.weir" detail D --sort name
expect_fail 125 '--filter .*\(.*regular expression' "$WEIR" report "$T/a.weir" functions --filter '('
expect_fail 125 'limit' "$WEIR" report "$T/a.weir" functions --limit -1
expect_fail 125 'no thread 5.*threads' "$WEIR" report "$T/a.weir" --thread 5
expect_fail 125 'OLD=NEW' "$WEIR" report "$T/a.weir" source main --source-map x
expect_fail 125 'nonsense' "$WEIR" report "$T/a.weir" --format nonsense
expect_fail 125 'FILE' "$WEIR" report
expect_fail 125 'compiled with -g.*asm' "$WEIR" report "$T/a.weir" source start
expect_fail 125 'never ran.*objdump' "$WEIR" report "$T/a.weir" asm report
expect_fail 125 'format' "$WEIR" export "$T/a.weir" -o "$T/out"
expect_fail 125 'nonsense' "$WEIR" export "$T/a.weir" --format nonsense -o "$T/out"
expect_fail 125 'nonexistent' "$WEIR" export "$T/a.weir" --format folded -o /nonexistent/out
sqlite3 "$T/a.weir" 'DELETE FROM context'
expect_fail 125 'paths=full' "$WEIR" report "$T/a.weir" tree
expect_fail 125 'paths=full' "$WEIR" export "$T/a.weir" --format folded -o "$T/out"
[[ ! -e $T/out ]] || fail "an export that failed left a file"
# Several names: the candidates are listed. A name that is misspelt: those that it may be.
"$FIXTURE" rich "$T/r.weir"
expect_fail 125 "no function is named 'mian'; did you mean 'main'" "$WEIR" report "$T/r.weir" detail mian
expect_fail 125 "did you mean 'area\\(int\\)'" "$WEIR" report "$T/r.weir" source AREE
run weir "$WEIR" report "$T/r.weir" detail '(int)'
[[ $(<"$T/weir.status") == 125 ]] && grep -q 'rich+0x1040  fib(int)' "$T/weir.err" || fail "no candidates: $(<"$T/weir.err")"
"$WEIR" report --help | grep -q -- --source-map
"$WEIR" export --help | grep -q callgrind
# A report that cannot be written is a failure.
status=0; "$WEIR" report "$T/r.weir" functions >/dev/full 2>"$T/err" || status=$?
[[ $status == 125 ]] && grep -q 'No space left' "$T/err" || fail "a full disk: $status $(<"$T/err")"
