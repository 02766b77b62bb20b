# issue 3, 1: PROGRAM.weir in the current directory, the older one kept; a summary of one screen on stderr, with the next command; -q says nothing.
. "$(dirname "$0")/lib.sh"
compile small.c -O1 <<'C'
#include <stdio.h>
int main() { puts("out"); }
C
mkdir "$T/here"; cd "$T/here"
"$WEIR" profile -- "$T/small" >"$T/out" 2>"$T/err" || fail "$(<"$T/err")"
[[ $(<"$T/out") == out && -s small.weir && ! -e small.weir.old ]] || fail "$(ls)"
lines=$(wc -l <"$T/err")
((lines == 12)) && [[ $(grep -c '^weir: ' "$T/err") == "$lines" ]] || fail "no summary of twelve lines: $(<"$T/err")"
head -n 1 "$T/err" | grep -Eq ' cycles .* instructions, .* cycles in OS calls; processes: 1, threads: 1$' || fail "$(<"$T/err")"
[[ $(grep -Ec '^weir: +[0-9.]+% .* calls  .*\[.*\]$' "$T/err") == 10 ]] || fail "not ten functions: $(<"$T/err")"
next=$(sed -n 's/^weir: next: weir //p' "$T/err")
"$WEIR" $next >/dev/null || fail "next: $next"
"$WEIR" profile -q -- "$T/small" >"$T/out" 2>"$T/err" || fail "$(<"$T/err")"
[[ ! -s $T/err && -s small.weir.old ]] || fail "-q: $(<"$T/err")"
