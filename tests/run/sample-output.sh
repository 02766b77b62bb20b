# A place where no profile can be written is told before the program runs; a disk that is full, after it; and an older profile stays.
. "$(dirname "$0")/lib.sh"
for output in "$T" /nonexistent/a.weir; do
  expect_fail 125 "${output:0:20}.*(directory|not a file)" "$WEIR" sample -o "$output" -- touch "$T/made"
  [[ ! -e $T/made ]] || fail "$output: the program ran although its profile cannot be written"
done
(cd "$T" && for i in 1 2; do timeout -k 5 $LIMIT "$WEIR" sample -q -- true || fail "status $?"; done)
[[ -s $T/true.weir && -s $T/true.weir.old ]] || fail "$(ls "$T")"
[[ $(stat -c %a "$T/true.weir") == 600 ]] || fail "others may read it: $(stat -c %a "$T/true.weir")"
mkdir "$T/disk"
mount -t tmpfs -o size=64k tmpfs "$T/disk" 2>/dev/null || skip 'no tmpfs can be mounted here'
trap 'umount "$T/disk"; rm -rf "$T"' EXIT
echo old >"$T/disk/run.weir"
expect_fail 125 "run.weir: .*(full|No space).*the profile is in $T/tmp/run.[0-9]*.weir;.*mv " "$WEIR" sample -q -o "$T/disk/run.weir" -- sh -c true
mv "$T"/tmp/run.*.weir "$T/run.weir" && check_profile 'what went elsewhere'
[[ $(stat -c %a "$T/run.weir") == 600 ]] || fail 'others may read it'
[[ $(ls "$T/disk") == run.weir && $(<"$T/disk/run.weir") == old ]] || fail "left: $(ls "$T/disk")"
mount -o remount,ro "$T/disk"
expect_fail 125 'run.weir|disk' "$WEIR" sample -q -o "$T/disk/run.weir" -- touch "$T/made"
[[ ! -e $T/made ]] || fail 'the program ran although the directory is read-only'
