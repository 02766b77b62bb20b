# spec 1, B3: a program that is missing (127) or cannot be executed (126), in one line.
. "$(dirname "$0")/lib.sh"
mkdir "$T/directory"; echo text >"$T/plain"
refused 127 'nosuch.*(not found|No such file)' ./nosuch
refused 127 'nosuch.*(not found|No such file)' nosuch
expect_fail 127 'nosuch' "$WEIR" run --tool=icount --json "$T/json" -- /nosuch/program
refused 127 '' ''
refused 126 'directory' "$T/directory"
refused 126 'plain.*(ermission|executable)' "$T/plain"
refused 127 'plain/below' "$T/plain/below"
ln -s "$T/loop" "$T/loop"
refused 126 'loop' "$T/loop"
