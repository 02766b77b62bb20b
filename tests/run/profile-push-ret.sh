# spec 1, A4: a function that goes to another by `push; ret` is no leaf: what it leads to ends when that returns.
. "$(dirname "$0")/lib.sh"
need sqlite3
bare trampoline <<'S'
  ten_times
  lea work(%rip), %rdi
  call trampoline
  call balanced
  again
  function trampoline
  push %rdi
  ret
  end trampoline
  function work
  mov $100, %ecx
1: dec %ecx
  jnz 1b
  ret
  end work
  function balanced
  push %rdi
  pop %rdi
  ret
  end balanced
S
OPTIONS=--clock=instructions profile "$T/trampoline"
answers "SELECT name, calls, self, total, self_max FROM function_total ORDER BY offset" <<'E2'
_start|1|54|2124|54
trampoline|10|20|2040|2
work|10|2020|2020|202
balanced|10|30|30|3
E2
