# spec 1, T6: by the clock of instructions every instruction is one, a repeated string instruction too.
. "$(dirname "$0")/lib.sh"
need sqlite3
compile repeats.S -nostdlib -static <<'S'
  .globl _start
  .type _start, @function
_start: lea buffer(%rip), %rdi
  mov $4096, %ecx
  rep stosb
  mov $60, %eax
  xor %edi, %edi
  syscall
  .size _start, . - _start
  .bss
buffer: .space 4096
S
OPTIONS=--clock=instructions profile "$T/repeats"
answers "SELECT cycles, instructions FROM thread" <<<'6|6'
profile "$T/repeats"
answers "SELECT cycles > 64 FROM thread" <<<1
