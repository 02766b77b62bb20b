# --stats prints functions, blocks, bytes, requests, misses, slow returns, time and peak sizes, on stderr only.
. "$(dirname "$0")/lib.sh"
run native ls /usr
run weir "$WEIR" run --stats -- ls /usr
cmp "$T/native.out" "$T/weir.out"
[[ $(<"$T/weir.status") == 0 ]] || fail "status $(<"$T/weir.status")"
for word in functions blocks bytes requests misses 'slow returns' translator peak; do
  grep -q "^weir: .*$word" "$T/weir.err" || fail "--stats does not tell '$word': $(<"$T/weir.err")"
done
