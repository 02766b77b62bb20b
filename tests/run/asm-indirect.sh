# Indirect calls and jumps by every addressing mode, through the stack, with needless prefixes.
. "$(dirname "$0")/lib.sh"
compile indirect.c <<'C'
#include "posix.h"
asm(R"(
f:        inc %eax; ret
modes:    push %rbp; push %rbx; push %r12; push %r13; xor %eax, %eax
          lea f(%rip), %rcx
.irp reg, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13
          mov %rcx, %\reg; call *%\reg
          lea slot(%rip), %\reg; call *(%\reg); lea -200(%\reg), %\reg; call *200(%\reg)
          lea slot(%rip), %\reg; shr $1, %\reg; call *(%\reg,%\reg)
          xor %\reg, %\reg; lea slot(%rip), %rcx; call *(%rcx,%\reg,8); lea f(%rip), %rcx
.endr
          call *slot(%rip); call *%fs:local@tpoff
          push %rcx; call *(%rsp); push %rcx; call *8(%rsp); pop %rdx; pop %rdx
          mov %rcx, -16(%rsp); call *-16(%rsp)
          pop %r13; pop %r12; pop %rbx; pop %rbp; ret
prefixes: xor %eax, %eax; lea f(%rip), %rcx; lea 1f(%rip), %rdx
          .byte 0x48, 0xff, 0xd1                       # rex.W call *%rcx
          .byte 0xf2; call *%rcx                       # bnd
          .byte 0x3e; call *%rcx                       # notrack
          .byte 0x2e, 0xf2, 0x3e; call *%rcx
          .byte 0x66, 0x66, 0x48; call f               # as in TLS sequences
          .byte 0xf2; call g; call h
          .byte 0x2e; jz 2f; .byte 0x3e; jnz 2f; ud2   # branch hints
2:        .byte 0xf2; jmp 3f; ud2
3:        .byte 0x3e, 0x40, 0xff, 0xe2; ud2            # notrack rex jmp *%rdx
1:        ret
g:        inc %eax; rep ret
h:        inc %eax; .byte 0xf2; ret
.data
slot: .quad f
.section .tdata, "awT"
local: .quad f
.text)");
long modes(void), prefixes(void);
int main() { long a = 0, b = 0; for (int i = 0; i < 10000; i++) a += modes(), b += prefixes(); printf("%ld %ld\n", a, b); }
C
same "$T/indirect"
