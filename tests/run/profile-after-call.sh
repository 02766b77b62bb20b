# What measures a call behind it runs when the call returns, and not when a table of jumps or a push and ret leads to that place: behind the
# call of a leaf, which has no frame, and of another function.
. "$(dirname "$0")/lib.sh"
need sqlite3
bare jumps -no-pie <<'S'
  function leaf
  nop
  ret
  end leaf
  function inner
  call leaf
  ret
  end inner
  function work
  mov $10, %r12d
  call leaf
1: lea 2f(%rip), %rcx
  mov %r12d, %edx
  and $1, %edx
  jz 4f
  dec %r12d
  movslq (%rcx,%rdx,4), %rdx
  add %rcx, %rdx
  jmp *%rdx
4: test %r12d, %r12d
  jz 5f
  dec %r12d
  lea 1b(%rip), %rdx
  push %rdx
  ret
5: mov $10, %r12d
  call inner
3: lea 2f(%rip), %rcx
  sub $2, %r12d
  jz 6f
  movslq 8(%rcx), %rdx
  add %rcx, %rdx
  jmp *%rdx
6: ret
  end work
  .section .rodata
  .balign 4
2: .long 6b - 2b
  .long 1b - 2b
  .long 3b - 2b
  .text
  ten_times
  call work
  again
S
for clock in register memory; do
  export WEIR_CLOCK=$clock
  OPTIONS=--clock=instructions profile "$T/jumps"
  # work: 5 times 8 instructions through the table, 5 times 10 by push and ret, and 6; then 4 times 6, and 3; and 5 beside the loops.
  answers "SELECT name, calls, self, total, self_min, self_max FROM function_total WHERE name IN ('leaf', 'inner', 'work') ORDER BY 1" <<'E'
inner|10|20|40|2|2
leaf|20|40|40|2|2
work|10|1280|1340|128|128
E
done
