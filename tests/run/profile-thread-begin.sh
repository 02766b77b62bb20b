# A thread begins in the function that made it. Without symbols nobody knows where functions end: one that lies before it, and ran first, is not that.
. "$(dirname "$0")/lib.sh"
bare begins -s <<'S'
  function before
  ret
  end before
  function makes_thread
  mov $56, %eax                  # clone: a thread, whose id is cleared when it has ended
  mov $0x250f00, %edi
  lea stack_end(%rip), %rsi
  lea tid(%rip), %r10
  syscall
  test %eax, %eax
  jz .Lthread
.Lwait:
  pause
  cmpl $0, tid(%rip)
  jne .Lwait
  ret
.Lthread:
  call before
  mov $60, %eax
  xor %edi, %edi
  syscall
  end makes_thread
  function _start
  call before
  call makes_thread
  mov $60, %eax
  xor %edi, %edi
  syscall
  end _start
  .data
tid: .long 1
  .bss
  .skip 4096
stack_end:
S
profile "$T/begins"
[[ $(ask "SELECT count(*) FROM call_count c JOIN site s ON s.id = c.site WHERE s.kind = 'start'") == 2 ]] || fail "threads"
