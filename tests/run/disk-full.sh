# No room for the result: one line, status 125, what was there before stays as it was; and a profile goes to another
# place, where it replaces nothing.
. "$(dirname "$0")/lib.sh"
expect_fail 125 '/dev/full: cannot be written' "$WEIR" run -q --tool=icount --json /dev/full -- true
mkdir "$T/disk"
if mount -t tmpfs -o size=64k tmpfs "$T/disk" 2>/dev/null; then
  trap 'umount "$T/disk"; rm -rf "$T"' EXIT
  "$WEIR" profile -q -o "$T/run.weir" -- true
  echo old >"$T/disk/run.weir"
  mkdir "$T/cache"
  for elsewhere in TMPDIR="$T/tmp" TMPDIR=/nonexistent; do
    expect_fail 125 "run.weir: .*(full|No space).*the profile is in $T/.*/run.[0-9]*.weir;.*mv " env $elsewhere XDG_CACHE_HOME="$T/cache" "$WEIR" profile -q -o "$T/disk/run.weir" -- true
  done
  for place in "$T/tmp" "$T/cache"; do
    mv "$place"/run.*.weir "$T/run.weir" || fail "no profile in $place: $(ls "$place")"
    check_profile 'what went elsewhere'
    [[ $(stat -c %a "$T/run.weir") == 600 ]] || fail 'others may read it'
  done
  [[ $(ls "$T/disk") == run.weir && $(<"$T/disk/run.weir") == old ]] || fail "left: $(ls "$T/disk")"
  head -c 100000 /dev/zero >"$T/disk/rest" 2>/dev/null || true
  expect_fail 125 'counts.json: cannot be written' "$WEIR" run -q --tool=icount --json "$T/disk/counts.json" -- true
  rm "$T/disk/rest"; echo '{}' >"$T/disk/counts.json"; head -c 100000 /dev/zero >"$T/disk/rest" 2>/dev/null || true
  expect_fail 125 'counts.json: cannot be written' "$WEIR" run -q --tool=icount --json "$T/disk/counts.json" -- true
  [[ $(<"$T/disk/counts.json") == '{}' && $(ls "$T/disk") == $'counts.json\nrest\nrun.weir' ]] || fail "left: $(head -c 200 "$T/disk/counts.json"), $(ls "$T/disk")"
else
  # The limit on file sizes leaves room for Weir's memory only where that is no file: so it is set by the program's parent, for the store.
  echo 'no tmpfs can be mounted here: only /dev/full was looked at'
fi
# A link stays a link, modes stay, and a pipe is written to.
mkdir "$T/kept"; echo old >"$T/kept/counts"; chmod 640 "$T/kept/counts"; ln -s kept/counts "$T/link"
"$WEIR" run -q --tool=icount --json "$T/link" -- true
[[ -L $T/link && $(stat -c %a "$T/kept/counts") == 640 && $(ls "$T/kept") == counts ]] || fail "$(ls -l "$T/link" "$T/kept")"
grep -q instructions "$T/kept/counts" || fail 'nothing was written through the link'
"$WEIR" run -q --tool=icount --json /dev/stdout -- true | grep -q instructions || fail 'nothing came through the pipe'
