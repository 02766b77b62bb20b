# A profile that is truncated or written to while it is open is told, and ends nobody.
. "$(dirname "$0")/lib.sh"
need jq python3
FIXTURE=$(dirname "$WEIR")/tests/fixture_store
"$FIXTURE" tables "$T/a.weir"; "$FIXTURE" rich "$T/b.weir"; cp "$T/a.weir" "$T/good.weir"
view "$T/a.weir" --diff "$T/b.weir"
question functions >/dev/null || fail "functions"
truncate -s 20000 "$T/a.weir"
for name in summary functions flame oscalls 'source?id=2' 'asm?id=2' threads coverage graph; do
  question "$name" >"$T/answer" && fail "$name of a truncated file: $(<"$T/answer")"
  grep -q 'a.weir was written to while it was open' "$T/answer" || fail "$name: $(<"$T/answer")"
done
question reload >"$T/answer" && fail "a truncated file was opened"
grep -q 'cut short' "$T/answer" || fail "$(<"$T/answer")"
cp "$T/b.weir" "$T/new.weir"; mv "$T/new.weir" "$T/a.weir"
question status | jq -e .changed >/dev/null || fail "another file is not told"
question reload >/dev/null && question flame >/dev/null || fail "the new file"
cat "$T/good.weir" >"$T/b.weir"
question functions >"$T/answer" && fail "the file to compare with: $(<"$T/answer")"
grep -q 'b.weir was written to' "$T/answer" || fail "$(<"$T/answer")"
stop_view
# While it is read: at any time.
cd "$T"
for _ in {1..20}; do
  for verb in 'report c.weir' 'export c.weir --format html -o c.html' 'diff c.weir good.weir'; do
    cp good.weir c.weir
    status=0
    timeout -k 5 $LIMIT "$WEIR" $verb >/dev/null 2>&1 & P=$!
    sleep 0.0$((RANDOM % 3))$((RANDOM % 10))
    truncate -s 16384 c.weir
    wait $P || status=$?
    [[ $status == 0 || $status == 125 ]] || fail "$verb of a file that is truncated ended with $status"
  done
done
