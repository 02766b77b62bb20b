# An instruction that the end of its symbol cuts in two does not leave the cache: all instructions are counted.
. "$(dirname "$0")/lib.sh"
compile cut.S -nostdlib -static <<'S'
.globl _start
.type f, @function
f: mov $5, %eax; add $0x12345678, %eax; inc %ecx; inc %ecx; ret
.size f, 7
_start: mov $100, %ebx
1: call f; dec %ebx; jne 1b
mov $60, %eax; xor %edi, %edi; syscall
S
oracle "$T/cut"
same "$T/cut"
