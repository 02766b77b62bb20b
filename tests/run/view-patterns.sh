# No regular expression that the page sends ends the server, or keeps it from answering.
. "$(dirname "$0")/lib.sh"
need jq python3
"$(dirname "$WEIR")/tests/fixture_store" tables "$T/a.weir"
view "$T/a.weir"
for bad in '(.*){1,200}{1,200}' '((a{1,255}){1,255}){1,255}' '(' '[z-a]' "$(printf '(%.0s' {1..2000})"; do
  question "functions?regex=1&filter=$bad" >"$T/answer" && fail "$bad is answered: $(<"$T/answer")"
  grep -q 'is not a regular expression: ' "$T/answer" || fail "$bad: $(<"$T/answer")"
done
[[ $(question 'functions?regex=1&filter=^(MAIN|[bd])$' | jq -r '[.rows[].name] | sort | join(" ")') == 'B D main' ]] || fail "a good one"
question 'functions?regex=1&filter=(a*)*(a|aa)+$' >/dev/null || fail "another good one"
for bad in '(.*){1,200}{1,200}' '((a{1,255}){1,255}){1,255}'; do
  expect_fail 125 'filter.*not a regular expression' "$WEIR" report "$T/a.weir" functions --filter "$bad"
  expect_fail 125 'filter.*not a regular expression' "$WEIR" diff "$T/a.weir" "$T/a.weir" --filter "$bad"
done
stop_view
