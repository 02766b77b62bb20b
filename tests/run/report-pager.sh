# On a terminal a report goes through the pager, in colour, unless NO_COLOR or --no-pager say otherwise.
. "$(dirname "$0")/lib.sh"
need script
FIXTURE=$(dirname "$WEIR")/tests/fixture_store
"$FIXTURE" tables "$T/a.weir"
on_terminal() { TERM=xterm script -qec "$1" /dev/null </dev/null | tr -d '\r'; }
on_terminal "PAGER='sed s/^/paged:/' $WEIR report $T/a.weir functions" >"$T/out"
grep -q '^paged:.*main' "$T/out" || fail "no pager: $(<"$T/out")"
grep -q $'\e\[' "$T/out" || fail "no colours"
on_terminal "PAGER='sed s/^/paged:/' WEIR_PAGER=cat $WEIR report $T/a.weir functions" | grep paged: >/dev/null && fail "WEIR_PAGER does not go before PAGER"
on_terminal "PAGER='sed s/^/paged:/' $WEIR report $T/a.weir functions --no-pager" | grep paged: >/dev/null && fail "--no-pager pages"
on_terminal "NO_COLOR=1 $WEIR report $T/a.weir functions --no-pager" | grep $'\e\[' >/dev/null && fail "NO_COLOR colours"
on_terminal "PAGER='head -n 1' $WEIR report $T/a.weir functions; echo status \$?" | grep 'status 0' >/dev/null || fail "a pager that is left early"
on_terminal "PAGER='sed s/^/paged:/' $WEIR report $T/a.weir detail nonsense" >"$T/out" || true
grep -q '^weir: no function' "$T/out" || fail "an error waits in the pager"
