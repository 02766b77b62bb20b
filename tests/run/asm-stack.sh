# Odd uses of the stack pointer: push and pop of rsp and memory, enter, leave, switched stacks.
. "$(dirname "$0")/lib.sh"
compile stack.c <<'C'
#include "posix.h"
asm(R"(
push_rsp: mov %rsp, %rdx; push %rsp; pop %rax; sub %rdx, %rax; ret
pop_rsp:  mov %rsp, %rdx; push %rdx; push $7; lea 8(%rsp), %rax; push %rax; pop %rsp; pop %rax; sub %rdx, %rax; ret
memory:   push $3; push $5; push 8(%rsp); pop 8(%rsp); push (%rsp); pop %rax; pop %rdx; pop %rcx; imul %rcx, %rax; add %rdx, %rax; ret
pop_base: push $1; push $2; push $40; pop 8(%rsp); pop %rax; pop %rdx; add %rdx, %rax; ret       # the address counts after the pop
frames:   enter $32, $0; mov %rbp, -8(%rbp); mov $9, %eax; mov %eax, -32(%rbp); add -32(%rbp), %eax; enter $16, $2; mov -8(%rbp), %rdx; leave; sub %rbp, %rdx; add %rdx, %rax; leave; ret
narrow:   pushw $0x1234; pushw $0x5678; pushw $0; pushw $1; pop %rax; ret
switched: lea other + 4096(%rip), %rax; xchg %rax, %rsp; push %rax; call memory; mov %eax, %eax; pop %rsp; ret
flags:    stc; pushf; orq $0x40, (%rsp); popf; setz %al; adc $0, %al; movzx %al, %eax; ret
arith:    mov %rsp, %rax; sub $4096, %rsp; and $-64, %rsp; mov %rax, 16(%rsp); call memory; mov 16(%rsp), %rsp; ret
.bss
.align 16
other: .fill 4096
.text)");
#define EACH(f) f(push_rsp) f(pop_rsp) f(memory) f(pop_base) f(frames) f(narrow) f(switched) f(flags) f(arith)
#define DECLARE(name) long name(void);
#define CALL(name) { long sum = 0; for (int i = 0; i < 1000; i++) sum += name(); printf("%s %lx\n", #name, sum); }
EACH(DECLARE)
int main() { EACH(CALL) }
C
same "$T/stack"
