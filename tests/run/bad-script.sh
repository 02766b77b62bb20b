# A script without interpreter (126), or with one that is missing (127).
. "$(dirname "$0")/lib.sh"
printf 'echo hello\n' >"$T/none"
printf '#!/nonexistent/sh\necho hello\n' >"$T/missing"
printf '#!\necho hello\n' >"$T/blank"
printf '#!%s\n' "$T" >"$T/directory"
printf '\000\001\002' >"$T/bytes"
chmod +x "$T"/{none,missing,blank,directory,bytes}
expect_fail 126 'none.*(#!|interpreter)' "$WEIR" run -- "$T/none"
expect_fail 127 'missing' "$WEIR" run -- "$T/missing"
for name in blank directory bytes; do expect_fail 126 "$name" "$WEIR" run -- "$T/$name"; done
