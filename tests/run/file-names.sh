# %p and %q{VAR} in names of files; --log-file has all that Weir says; -v tells how programs ended, and what the engine did.
. "$(dirname "$0")/lib.sh"
need python3
mkdir "$T/here"; cd "$T/here"
export NAME=a-name
"$WEIR" profile -q -o 'x-%p-%q{NAME}-%%-100%.weir' -- true & wait $! || fail "profile: $?"
[[ $(ls) == "x-$!-a-name-%-100%.weir" ]] || fail "-o: $(ls), not $!"
rm ./*
"$WEIR" run -q --tool=icount --json 'x-%p.json' --log-file '%q{NAME}.log' -- true & wait $! || fail "run: $?"
[[ $(ls) == "a-name.log"$'\n'"x-$!.json" && ! -s a-name.log ]] || fail "--json: $(ls), not $!"
expect_fail 125 '-o: %q\{NONE\}.*environment' "$WEIR" profile -o '%q{NONE}' -- touch "$T/made"
expect_fail 125 '--log-file /nonexistent/log: cannot be written' "$WEIR" run --log-file /nonexistent/log -- touch "$T/made"
[[ ! -e $T/made ]] || fail "the program ran"
for verb in run profile; do
  run weir "$WEIR" $verb -v --log-file "$T/log" -- sh -c '(exit 3); echo out; echo err >&2; exit 4'
  [[ $(<"$T/weir.status") == 4 && $(<"$T/weir.out") == out && $(<"$T/weir.err") == err ]] || fail "$verb: $(<"$T/weir.err")"
  grep -Eq '^weir: process [0-9]+: sh -c .*: exit 4$' "$T/log" && grep -q ': exit 3$' "$T/log" && grep -q '^weir: translator: ' "$T/log" ||
    fail "$verb: $(<"$T/log")"
done
