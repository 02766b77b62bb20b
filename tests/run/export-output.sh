# An export never takes the place of the profile that it reads, and an older export stays until the new one is whole.
. "$(dirname "$0")/lib.sh"
cd "$T"
"$(dirname "$WEIR")/tests/fixture_store" tables a.weir
cp a.weir b.weir; cp a.weir kept
ln -s a.weir link; ln a.weir second
for name in a.weir ./a.weir "$T/link" "$T/second"; do
  for format in folded callgrind html; do
    expect_fail 125 'a.weir itself, .*name another' bash -c 'cd "$1" && exec "${@:2}"' - "$T" "$WEIR" export a.weir --format $format -o "$name"
    cmp -s a.weir kept || fail "$format to $name: the profile is another"
  done
done
expect_fail 125 'b.weir itself' "$WEIR" export "$T/a.weir" --diff "$T/b.weir" --format html -o "$T/b.weir"
status=0; "$WEIR" export a.weir --format folded -o - >>a.weir 2>err || status=$?
[[ $status == 125 ]] && cmp -s a.weir kept || fail "appended to itself: $status"
# A failure, before anything is written and in the middle of it.
echo older >out; chmod 640 out; ln -s out to-out
sqlite3 b.weir 'DELETE FROM context'
"$WEIR" export b.weir --format folded -o out 2>err && fail "folded, without paths"
[[ $(<out) == older ]] || fail "the older export: $(<out)"
status=0; (ulimit -f 1; trap '' XFSZ; exec "$WEIR" export a.weir --format html -o out) 2>err || status=$?
[[ $status == 125 && $(<out) == older ]] && grep -q '^weir: out: cannot be written: File too large' err || fail "status $status, $(head -c 100 out), $(<err)"
[[ $(echo out*) == out ]] || fail "left behind: $(echo out*)"
# What works: over an older one, whose mode stays, through a link, which stays one, and into what is no file.
"$WEIR" export a.weir --format folded -o to-out
[[ -L to-out && $(stat -c %a out) == 640 ]] || fail "$(ls -l)"
"$WEIR" export a.weir --format folded -o - | cmp - out || fail "a pipe"
{ echo before; "$WEIR" export a.weir --format folded -o -; } >all; cmp <(echo before; cat out) all || fail "-o - in a file"
"$WEIR" export a.weir --format folded -o /dev/stdout | cmp - out || fail "/dev/stdout"
"$WEIR" export a.weir --format folded -o >(cat >piped); wait_for cmp -s piped out || fail "a pipe by its name"
expect_fail 125 '/dev/full: cannot be written: No space' "$WEIR" export "$T/a.weir" --format folded -o /dev/full
[[ -c /dev/full ]] || fail "/dev/full is gone"
