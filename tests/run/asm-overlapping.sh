# Jumps past a lock prefix and into the middle of instructions.
. "$(dirname "$0")/lib.sh"
compile overlap.c <<'C'
#include "posix.h"
asm(R"(
locked:   xor %eax, %eax; test %edi, %edi; je 1f; lock; 1: incl counter(%rip); adc %eax, %eax; mov counter(%rip), %eax; ret
repeated: mov %rdi, %rcx; lea buffer(%rip), %rdi; mov $7, %al; test %rcx, %rcx; js 1f; rep; 1: stosb; lea buffer(%rip), %rax; sub %rax, %rdi; mov %rdi, %rax; ret
wide:     mov %rdi, %rax; test $1, %dil; jnz 1f; .byte 0x48; 1: add %eax, %eax; ret                         # with and without REX.W
hidden:   xor %eax, %eax; test %edi, %edi; jz 1f; jmp 1f + 1
1:        .byte 0xb8, 0xff, 0xc0, 0xc3, 0x90                                                                 # mov $.., %eax, or inc %eax; ret
          ret
both:     mov $5, %eax; test %edi, %edi; jz 1f; jmp 1f + 2
1:        .byte 0xeb, 0x02, 0xff, 0xc8, 0x01, 0xf8; ret                                                      # jmp over dec; dec seen from the second entry
.data
counter: .long 0
buffer: .fill 64
.text)");
long locked(long), repeated(long), wide(long), hidden(long), both(long);
int main() {
  for (int i = 0; i < 10000; i++) locked(i & 1);
  printf("%ld %ld %ld\n", locked(0), repeated(20), repeated(-1));
  printf("%lx %lx %lx %lx\n", wide(0x1234567890), wide(0x1234567891), hidden(0), hidden(1));
  printf("%ld %ld\n", both(0), both(3));
}
C
same "$T/overlap"
