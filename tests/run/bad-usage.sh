# Unknown options, tools and verbs, missing arguments, a result that cannot be written: 125, in one line.
. "$(dirname "$0")/lib.sh"
expect_fail 125 'nonsense' "$WEIR" run --nonsense -- true
expect_fail 125 'nonsense' "$WEIR" run --tool=nonsense -- true
expect_fail 125 'nonsense' "$WEIR" nonsense
expect_fail 125 'program' "$WEIR" run
expect_fail 125 'program' "$WEIR" run --
expect_fail 125 'program' "$WEIR" run --tool=icount
expect_fail 125 'json|argument|FILE' "$WEIR" run --json
expect_fail 125 'nonexistent' "$WEIR" run --tool=icount --json /nonexistent/file -- touch "$T/made"
[[ ! -e $T/made ]] || fail "the program ran although its result cannot be written"
expect_fail 127 'nonexistent' "$WEIR" run --tool=icount --json "$T/counts" -- /nonexistent
[[ ! -e $T/counts ]] || fail "a run that never began left its result"
"$WEIR" --help | grep -q 'weir run'
"$WEIR" run --help | grep -q -- --json
for verb in run profile; do
  "$WEIR" $verb --help >"$T/help"
  grep -q "^Usage: weir $verb \[OPTIONS\] \[--\] PROGRAM \[ARGUMENTS\]$" "$T/help" || fail "usage: $(<"$T/help")"
  # What options mean stands in one column, in the line of the option or the next.
  columns=$(sed -nE '/^Options:/,/^$/ s/^(  -[^ ].*[^ ]  +|  +)[^ -].*/\1/p' "$T/help" | awk '{ print length }' | sort -u)
  [[ $columns == 30 ]] || fail "columns $columns: $(<"$T/help")"
done
"$WEIR" --version | grep -q '^weir [0-9]'
