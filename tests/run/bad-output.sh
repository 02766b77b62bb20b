# A place where no profile can be written is told before the program runs; what is no file is left alone.
. "$(dirname "$0")/lib.sh"
FIXTURE=$(dirname "$WEIR")/tests/fixture_store
mkfifo "$T/pipe"
long=$(printf 'x%.0s' {1..250})
for output in "$T" "$T/pipe" "$T/$long" /nonexistent/a.weir; do
  expect_fail 125 "${output:0:20}.*(directory|not a file|too long)" "$WEIR" profile -o "$output" -- touch "$T/made"
  [[ ! -e $T/made ]] || fail "$output: the program ran although its profile cannot be written"
done
expect_fail 125 'no directory /nonexistent/; make it first: mkdir -p /nonexistent/' "$WEIR" profile -o /nonexistent/a.weir -- true
[[ -p $T/pipe ]] || fail "the pipe is gone"
"$FIXTURE" tables "$T/a.weir"
sqlite3 "$T/a.weir" 'DELETE FROM context'
echo before >"$T/out"
expect_fail 125 'paths=full' "$WEIR" export "$T/a.weir" --format folded -o "$T/out"
[[ $(<"$T/out") == before ]] || fail "an export that failed changed the file"
expect_fail 125 'paths=full' "$WEIR" export "$T/a.weir" --format folded -o "$T/pipe"
[[ -p $T/pipe ]] || fail "an export that failed removed what is no file"
expect_fail 125 'is not a file' "$WEIR" report "$T/pipe"
# A directory that is removed under the program.
mkdir "$T/gone"
(cd "$T/gone" && exec "$WEIR" profile -q -o "$T/b.weir" -- rmdir "$T/gone") || fail "a directory that is removed"
[[ -s $T/b.weir ]] || fail "no profile"
