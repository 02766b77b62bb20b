# spec 1, A4: a small function that returns twice, as the setjmp of the dynamic loader does.
. "$(dirname "$0")/lib.sh"
need sqlite3
bare twice <<'S'
  ten_times
  call save
  test %eax, %eax
  jnz 2f
  call back
2: call work
  again
  function save
  mov (%rsp), %rcx
  mov %rcx, pc(%rip)
  lea 8(%rsp), %rcx
  mov %rcx, sp(%rip)
  xor %eax, %eax
  ret
  end save
  function back
  call work
  mov $1, %eax
  mov sp(%rip), %rsp
  jmp *pc(%rip)
  end back
  function work
  nop
  ret
  end work
  .bss
pc: .quad 0
sp: .quad 0
S
OPTIONS=--clock=instructions profile "$T/twice"
answers "SELECT name, calls, self, total, self_max FROM function_total ORDER BY offset" <<'E2'
_start|1|94|234|94
save|10|60|60|6
back|10|40|60|4
work|20|40|40|2
E2
