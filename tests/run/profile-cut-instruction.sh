# Of code without symbols nobody knows where it ends. Where it is taken to end may be in the middle of an instruction, which then begins what it runs on into. The pieces are
# one function.
. "$(dirname "$0")/lib.sh"
bare long -s <<'S'
  function long
  .rept 3000
  mov $1, %rax                   # seven bytes
  .endr
  ret
  end long
  ten_times
  call long
  again
S
OPTIONS=--clock=instructions profile "$T/long"
[[ $(ask "SELECT count(*), sum(self), max(total) FROM function_total WHERE self > 0") == '2|30044|30044' ]] || fail "$(ask "SELECT name, calls, self, total FROM function_total")"
[[ $(ask "SELECT DISTINCT calls FROM function_total WHERE self > 100") == 10 ]] || fail "$(ask "SELECT name, calls, self, total FROM function_total")"
