# PROGRAM.weir in the current directory, the older one kept; a summary of one screen on stderr, which is what weir report shows; -q says nothing.
. "$(dirname "$0")/lib.sh"
compile small.c -O1 <<'C'
#include <stdio.h>
int main() { puts("out"); }
C
mkdir "$T/here"; cd "$T/here"
"$WEIR" profile -- "$T/small" >"$T/out" 2>"$T/err" || fail "$(<"$T/err")"
[[ $(<"$T/out") == out && -s small.weir && ! -e small.weir.old ]] || fail "$(ls)"
lines=$(wc -l <"$T/err")
((lines <= 26)) && [[ $(grep -c '^weir: ' "$T/err") == "$lines" ]] || fail "no summary of one screen: $(<"$T/err")"
"$WEIR" report small.weir | grep . >"$T/report"
diff <(sed 's/^weir: //' "$T/err") "$T/report" || fail "the summary is not the report's"
grep -Eq '^  total  .* = code \+ OS calls$' "$T/report" && grep -Eq '^  ended  +exit 0$' "$T/report" || fail "$(<"$T/report")"
# "N of M ran" counts what the table would show without a limit.
ran=$(sed -nE 's/^  functions +([0-9,]+) of [0-9,]+ ran( \(.*)?$/\1/p' "$T/report"); ran=${ran//,/}
[[ $("$WEIR" report small.weir functions --format csv | tail -n +2 | wc -l) == "$ran" ]] || fail "$ran ran, but the list has others"
more=$(sed -nE 's/^… and ([0-9,]+) more .*/\1/p' "$T/report"); more=${more//,/}
((more + 10 == ran)) || fail "10 and $more more are not $ran"
sed -nE 's/^(next:|     ) weir //p' "$T/report" >"$T/next"
[[ $(wc -l <"$T/next") == 2 ]] || fail "no next commands: $(<"$T/report")"
while read -r words; do "$WEIR" $words >/dev/null || fail "next: $words"; done <"$T/next"
"$WEIR" profile -q -- "$T/small" >"$T/out" 2>"$T/err" || fail "$(<"$T/err")"
[[ ! -s $T/err && -s small.weir.old ]] || fail "-q: $(<"$T/err")"
