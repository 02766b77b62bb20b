# spec 1, S1 and A8: a function that never ran, in a file of which others did, is marked, and counts in the coverage of the file.
. "$(dirname "$0")/lib.sh"
need jq
compile never.c -O1 -g -fno-inline <<'C'
int unused(int x) {
  return x * 2;
}
int used(int x) { return x * 3; }
int main(int count, char** words) { return count > 1 ? unused(count) : used(0); }
C
profile "$T/never"
[[ $(report source never.c --format json | jq -r '[.rows[] | select(.line == 1 or .line == 4) | .mark] | join(" ")') == '# |' ]] || fail "$(report source never.c)"
report source never.c | grep -q '^\* never ran' || fail "$(report source never.c)"
[[ $(report coverage --filter 'never\.c$' --format json | jq -c '.coverage[] | [.functions, .functions_run]') == '[3,2]' ]] || fail "$(report coverage --filter 'never\.c$')"
