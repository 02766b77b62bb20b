# issue 2, 7: executed instructions equal those of a single-stepped native run: hand-written loops, calls, rep, tables.
. "$(dirname "$0")/lib.sh"
compile loops.S -nostdlib -static <<'S'
  .globl _start
_start:                                     # 1 + 5 * 1000
  mov $1000, %ebx
1: call leaf
  dec %ebx
  jnz 1b
  mov $100, %ebx                            # 1 + 100 * 6: a rep counts once, whatever its count
2: lea buffer(%rip), %rdi
  lea (%rbx,%rbx), %ecx
  xor %eax, %eax
  rep stosb
  dec %ebx
  jnz 2b
  mov $60, %eax                             # 3
  xor %edi, %edi
  syscall
leaf: inc %edx
  ret
  .bss
buffer: .fill 300
S
oracle "$T/loops"
[[ $(sed -n 's/^instructions //p' "$T/steps") == $((1 + 5 * 1000 + 1 + 100 * 6 + 3)) ]] || fail "the single-stepper counts $(cat "$T/steps")"
