# A place behind a call is a target of a jump table, too, and the function is first translated without that call, which only a return leads to: what the
# call returns to ends it all the same.
. "$(dirname "$0")/lib.sh"
bare jumped <<'S'
  function f
  dec %r12
  js .Lout
  sub $8, %rsp
  mov %r12d, %eax
  and $1, %eax
  lea .Ltable(%rip), %rcx
  movslq (%rcx,%rax,4), %rax
  add %rcx, %rax
  jmp *%rax
.Leven: lea .Lhidden(%rip), %rax
  push %rax
  ret
.Lhidden: call f
.Lodd: nop
  nop
  add $8, %rsp
.Lout: ret
  end f
  .section .rodata
.Ltable: .long .Leven - .Ltable, .Lodd - .Ltable
  .text
  ten_times
  mov $5, %r12d
  call f
  again
S
OPTIONS=--clock=instructions profile "$T/jumped"
[[ $(ask "SELECT c.calls, c.self_min, c.self_max FROM call_count c JOIN site s ON s.id = c.site WHERE s.function = c.callee") == '10|13|13' ]] ||
  fail "$(ask "SELECT c.site, c.calls, c.total, c.self_min, c.self_max FROM call_count c")"
