# Flags across calls, returns and indirect jumps, into the callee and back, all of them.
. "$(dirname "$0")/lib.sh"
compile flags.c <<'C'
#include "posix.h"
asm(R"(
compare:  cmp %rsi, %rdi; ret                                                   # results are flags
back:     call compare; pushf; pop %rax; ret
back_indirect: call *pointer(%rip); pushf; pop %rax; ret
back_tail: push %rbx; lea compare(%rip), %rbx; call 1f; pushf; pop %rax; pop %rbx; ret
1:        jmp *%rbx
into:     cmp %rsi, %rdi; call 1f; ret
1:        pushf; pop %rax; ret
into_indirect: cmp %rsi, %rdi; call *reader(%rip); ret
read:     pushf; pop %rax; ret
over_jump: lea 1f(%rip), %rdx; cmp %rsi, %rdi; jmp *%rdx
1:        pushf; pop %rax; ret
over_push: lea 1f(%rip), %rdx; push %rdx; cmp %rsi, %rdi; ret
1:        pushf; pop %rax; ret
carry:    mov $20, %ecx; xor %eax, %eax; cmp %rsi, %rdi                         # CF lives across a loop of dec and calls
1:        call 2f; dec %ecx; jnz 1b; ret
2:        adc %rdi, %rax; ret
direction: std; call 1f; cld; ret                                               # DF too
1:        push %rsi; mov %rsp, %rsi; lodsq; pop %rdx; sub %rsp, %rsi; mov %rsi, %rax; ret
.data
pointer: .quad compare
reader: .quad read
.text)");
#define EACH(f) f(back) f(back_indirect) f(back_tail) f(into) f(into_indirect) f(over_jump) f(over_push) f(carry) f(direction)
#define DECLARE(name) long name(long, long);
#define CALL(name) { uint64_t sum = 0; for (int i = 0; i < 400; i++) sum = mix(sum, name(values[i / 20], values[i % 20])); printf("%s %lx\n", #name, sum); }
EACH(DECLARE)
int main() {
  long values[20] = {0, 1, -1, LONG_MAX, LONG_MIN, LONG_MIN + 1, 15, 16, 255, 256, -16, -255, INT_MAX, INT_MIN, 1L << 32};
  for (int i = 15; i < 20; i++) values[i] = mix(i, values[i - 1]);
  EACH(CALL)
}
C
same "$T/flags"
