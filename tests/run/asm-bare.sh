# A program of a few instructions, without libc, without sections.
. "$(dirname "$0")/lib.sh"
compile bare.S -nostdlib -static -Wl,--build-id=none <<'S'
  .globl _start
_start:
  mov $1, %eax
  mov $1, %edi
  lea text(%rip), %rsi
  mov $6, %edx
  syscall
  mov $60, %eax
  mov $7, %edi
  syscall
text: .ascii "hello\n"
S
STATUS=7 same "$T/bare"
strip "$T/bare"
objcopy --strip-section-headers "$T/bare" 2>/dev/null || true
STATUS=7 same "$T/bare"
