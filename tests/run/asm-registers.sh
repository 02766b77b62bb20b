# Every register keeps its value across local calls, indirect calls, jumps and system calls.
. "$(dirname "$0")/lib.sh"
compile registers.c <<'C'
#include "posix.h"
asm(R"(
.macro each what; \what rax,0; \what rbx,1; \what rcx,2; \what rdx,3; \what rsi,4; \what rdi,5; \what rbp,6; \what r8,7; \what r9,8
\what r10,9; \what r11,10; \what r12,11; \what r13,12; \what r14,13; \what r15,14; .endm
.macro set reg, n; movabs $0x1111111111111111 * (\n + 1) - 0x7, %\reg; .endm
.macro get reg, n; mov %\reg, registers + 8 * \n(%rip); .endm
.macro bump reg, n; lea 1 + \n(%\reg), %\reg; .endm
.macro begin name
\name: push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; mov %rsp, stack(%rip); each set; .endm
.macro end; each get; sub %rsp, stack(%rip); pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; ret; .endm
empty:  ret
bumps:  each bump; ret                      # values come back in all registers
deeper: call empty; call *bumper(%rip); ret
begin direct; call empty; end
begin indirect; call *bumper(%rip); end
begin nested; call deeper; end
begin jumped; jmp *next(%rip); ud2; 1: end
begin returned; pushq next2(%rip); ret; ud2; 2: end
begin kernel; mov $110, %eax; syscall; after: mov $0, %eax; end
.data
bumper: .quad bumps
next: .quad 1b
next2: .quad 2b
.globl registers
registers: .fill 15, 8, 0
stack: .quad 0
.text)");
extern uint64_t registers[15], stack; extern char after[];
#define EACH(f) f(direct) f(indirect) f(nested) f(jumped) f(returned) f(kernel)
void direct(void), indirect(void), nested(void), jumped(void), returned(void), kernel(void);
int main() {
#define SHOW(name) for (int i = 0; i < 1000; i++) name(); \
  if (name == kernel) registers[2] = registers[2] == (uint64_t)after, registers[10] &= 0x8d5; \
  printf("\n%s, rsp off by %ld:", #name, (long)stack); for (int i = 0; i < 15; i++) printf(" %lx", registers[i]);
  EACH(SHOW)
}
C
same "$T/registers"
