# Every conditional jump, set and move under all flags; loop, loope, loopne, jrcxz, jecxz.
. "$(dirname "$0")/lib.sh"
compile branches.c <<'C'
#include "posix.h"
asm(R"(
.macro one cc
1: push %rdi; popf; j\cc 2f; xor %eax, %eax; jmp 3f
2: mov $1, %eax
3: push %rdi; popf; set\cc %dl; movzx %dl, %edx; lea (%rax,%rdx,2), %eax; mov $4, %ecx; xor %edx, %edx; push %rdi; popf; cmov\cc %ecx, %edx; add %edx, %eax; ret
.align 128
.endm
.align 128
conditions:
.irp cc, o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g
one \cc
.endr
loops: mov %rdi, %rcx; xor %eax, %eax; 1: inc %eax; loop 1b; ret
loops_equal: mov %rdi, %rcx; xor %eax, %eax; 1: inc %eax; cmp %rsi, %rax; loopne 1b; shl $8, %rax; add %rcx, %rax; ret
loops_until: mov %rdi, %rcx; xor %eax, %eax; 1: inc %eax; cmp %rsi, %rax; setl %dl; cmp $1, %dl; loope 1b; shl $8, %rax; add %rcx, %rax; ret
loops_short: mov %rdi, %rcx; xor %eax, %eax; 1: inc %eax; addr32 loop 1b; ret
zero: mov %rdi, %rcx; xor %eax, %eax; stc; jrcxz 1f; inc %eax; 1: adc %eax, %eax; jecxz 2f; add $100, %eax; 2: ret
)");
extern char conditions[]; long loops(long), loops_equal(long, long), loops_until(long, long), loops_short(long), zero(long);
int main() {
  for (int c = 0; c < 16; c++) {
    uint64_t sum = 0;
    for (int bits = 0; bits < 32; bits++)
      sum = sum * 8 + sum / 5 + ((long (*)(long))(conditions + 128 * c))((bits & 1) | (bits & 2) << 1 | (bits & 12) << 4 | (bits & 16) << 7 | 0x202);
    printf("%d %lx\n", c, sum);
  }
  printf("%ld %lx %lx %ld\n", loops(100000), loops_equal(50, 20), loops_until(50, 20), loops_short(0x500000003));
  printf("%ld %ld %ld\n", zero(0), zero(1), zero(1L << 32));
}
C
same "$T/branches"
