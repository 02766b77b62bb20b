# issue 2, bad input: a program that is missing (127) or cannot be executed (126), in one line.
. "$(dirname "$0")/lib.sh"
mkdir "$T/directory"; echo text >"$T/plain"
expect_fail 127 'nosuch.*(not found|No such file)' "$WEIR" run -- ./nosuch
expect_fail 127 'nosuch.*(not found|No such file)' "$WEIR" run -- nosuch
expect_fail 127 'nosuch' "$WEIR" run --tool=icount --json "$T/json" -- /nosuch/program
expect_fail 127 '' "$WEIR" run -- ''
expect_fail 126 'directory' "$WEIR" run -- "$T/directory"
expect_fail 126 'plain.*(ermission|executable)' "$WEIR" run -- "$T/plain"
expect_fail 127 'plain/below' "$WEIR" run -- "$T/plain/below"
ln -s "$T/loop" "$T/loop"
expect_fail 126 'loop' "$WEIR" run -- "$T/loop"
