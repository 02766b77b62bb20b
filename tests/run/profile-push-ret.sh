# spec 1, A4: a function that goes to another by `push; ret` is no leaf: what it leads to ends when that returns.
. "$(dirname "$0")/lib.sh"
need sqlite3
compile trampoline.S -nostdlib -static <<'S'
  .globl _start, trampoline, work, balanced
  .type _start, @function
_start: mov $10, %ebx
  lea work(%rip), %rdi
1: call trampoline
  call balanced
  dec %ebx
  jnz 1b
  mov $60, %eax
  xor %edi, %edi
  syscall
  .size _start, . - _start
  .type trampoline, @function
trampoline: push %rdi
  ret
  .size trampoline, . - trampoline
  .type work, @function
work: mov $100, %ecx
1: dec %ecx
  jnz 1b
  ret
  .size work, . - work
  .type balanced, @function
balanced: push %rdi
  pop %rdi
  ret
  .size balanced, . - balanced
S
OPTIONS=--clock=instructions profile "$T/trampoline"
answers "SELECT name, calls, self, total, self_max FROM function_total ORDER BY offset" <<'E2'
_start|1|45|2115|45
trampoline|10|20|2040|2
work|10|2020|2020|202
balanced|10|30|30|3
E2
