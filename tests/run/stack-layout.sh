# The stack at the first instruction: argc, arguments, environment, auxiliary vector; registers are zero.
. "$(dirname "$0")/lib.sh"
compile start.S -nostdlib -static <<'S'
  .globl _start
_start:                              # the status tells what is wrong: registers first
  mov $1, %r10; or %rax, %rbx; or %rcx, %rbx; or %rdx, %rbx; or %rsi, %rbx; or %rdi, %rbx; or %rbp, %rbx; or %r8, %rbx; or %r9, %rbx; or %r11, %rbx; or %r12, %rbx; or %r13, %rbx; or %r14, %rbx; or %r15, %rbx
  jnz bad
  inc %r10; test $15, %rsp; jnz bad
  inc %r10; cmpq $3, (%rsp); jne bad
  inc %r10; cmpq $0, 32(%rsp); jne bad          # argv[3]
  inc %r10; mov 16(%rsp), %rax; cmpb $'a', (%rax); jne bad
  inc %r10; lea 40(%rsp), %rsi                  # environment
1: lodsq; test %rax, %rax; jnz 1b
2: lodsq; mov %rax, %rdx; lodsq; test %rdx, %rdx; jz 3f; cmp $9, %rdx; jne 2b      # AT_ENTRY
  lea _start(%rip), %rdx; cmp %rax, %rdx; jne bad; mov $42, %r10; jmp 2b
3: stmxcsr -8(%rsp); cmpl $0x1f80, -8(%rsp); jne bad
  fnstcw -8(%rsp); cmpw $0x37f, -8(%rsp); jne bad
bad: mov %r10, %rdi; mov $231, %eax; syscall
S
STATUS=42 same "$T/start" a b
STATUS=42 same env -i A=1 "$T/start" a b
