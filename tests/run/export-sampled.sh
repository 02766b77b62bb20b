# spec 3, S9: callgrind_annotate and pprof read the exports of a sampled profile, and find its samples and seconds in them.
. "$(dirname "$0")/lib.sh"
need callgrind_annotate protoc
FIXTURE=$(dirname "$WEIR")/tests/fixture_store
"$FIXTURE" sampled "$T/s.weir"
"$WEIR" export "$T/s.weir" --format callgrind -o "$T/callgrind.out.1"
callgrind_annotate --inclusive=yes --tree=both --auto=no "$T/callgrind.out.1" >"$T/annotated" 2>"$T/err" || fail "$(<"$T/err")"
[[ ! -s $T/err ]] || fail "callgrind_annotate says: $(<"$T/err")"
find_line() { grep -Eq -- "$1" "$2" || fail "no line '$1' in"$'\n'"$(<"$2")"; }
find_line 'Events recorded: +Samples$' "$T/annotated"
find_line '1,000 \(100.0%\) +PROGRAM TOTALS' "$T/annotated"
find_line '490 \(49.00%\) .*\*  /src/spin.c:fib ' "$T/annotated"
find_line '40 .*< \?\?\?:\[cut off: no unwind rule\]' "$T/annotated"
grep -q '(0x)' "$T/annotated" && fail "calls that were made 0 times: $(<"$T/annotated")"

"$WEIR" export "$T/s.weir" --format pprof -o "$T/s.pb.gz"
gzip -dc "$T/s.pb.gz" | protoc --decode=perftools.profiles.Profile -I "$HERE/../../src/report" profile.proto >"$T/decoded" || fail "protoc"
find_line '^period: 1000000$' "$T/decoded"
find_line '^period_type \{$' "$T/decoded"
[[ $(awk '/value:/ { n++; if (n % 2) samples += $2; else ns += $2 } END { printf "%d %d", samples, ns }' "$T/decoded") == '1000 1000000000' ]] ||
  fail "values: $(<"$T/decoded")"
if command -v go >/dev/null; then
  go tool pprof -noinlines -top "$T/s.pb.gz" >"$T/top" 2>"$T/err" || fail "go tool pprof: $(<"$T/err")"
  find_line '^Type: cpu$' "$T/top"
  find_line '490ms 49.00% 49.00% +490ms 49.00% +fib' "$T/top"
  go tool pprof -top "$T/s.pb.gz" 2>"$T/err" | grep -Eq '250ms 25.00% .* square \(inline\)' || fail "no inlined function: $(go tool pprof -top "$T/s.pb.gz" 2>&1)"
  mkdir "$T/src"; "$FIXTURE" source sampled >"$T/src/spin.c"
  go tool pprof -trim_path /src -source_path "$T/src" -list '^fib$' "$T/s.pb.gz" >"$T/list" 2>"$T/err" || fail "pprof -list: $(<"$T/err")"
  find_line '290ms +290ms +4:  if \(n < 2\) return n;' "$T/list"
  go tool pprof -noinlines -sample_index=samples -top "$T/s.pb.gz" 2>"$T/err" >"$T/top"
  find_line '300 30.00% 79.00% +850 85.00% +work' "$T/top"
fi
