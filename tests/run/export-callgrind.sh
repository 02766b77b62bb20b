# Callgrind_annotate reads the export and finds the seed's figures in it, callers and inlined lines included.
. "$(dirname "$0")/lib.sh"
need callgrind_annotate
FIXTURE=$(dirname "$WEIR")/tests/fixture_store
"$FIXTURE" tables "$T/a.weir"
"$WEIR" export "$T/a.weir" --format callgrind -o "$T/callgrind.out.1"
callgrind_annotate --inclusive=yes --tree=both --auto=no "$T/callgrind.out.1" >"$T/annotated" 2>"$T/err" || fail "$(<"$T/err")"
[[ ! -s $T/err ]] || fail "callgrind_annotate says: $(<"$T/err")"
find_line() { grep -Eq -- "$1" "$T/annotated" || fail "no line '$1' in"$'\n'"$(<"$T/annotated")"; }
find_line '101,100 \(100.0%\).*PROGRAM TOTALS'
find_line '50,000 .*\*  /src/tables.c:B '
find_line '40,000 .*\*  /src/tables.c:C '
find_line '30,000 .*< /src/tables.c:B \(40x\)'
find_line '10,000 .*< /src/tables.c:C \(40x\)'
callgrind_annotate --auto=no "$T/callgrind.out.1" >"$T/annotated"
find_line '^ *40,000 .*/src/tables.c:D '
find_line '^ *30,000 .*/src/tables.c:C '
"$FIXTURE" rich "$T/r.weir"
"$WEIR" export "$T/r.weir" --format callgrind -o - >"$T/callgrind.out.2"
callgrind_annotate --auto=no --threshold=100 "$T/callgrind.out.2" >"$T/annotated" 2>"$T/err"
[[ ! -s $T/err ]] || fail "callgrind_annotate says: $(<"$T/err")"
find_line '7,547 \(100.0%\) 9,500 \(100.0%\) 7,000 \(100.0%\) +PROGRAM TOTALS'
find_line '^ *800 .*/src/square.h:area\(int\)'
find_line '^ *200 .*/src/rich.cc:area\(int\)'
find_line '^ *147 .* 9,000 .*libc.so.6\+0x28000'
