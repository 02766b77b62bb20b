# Hand-written push; ret, returns that skip data, dropped and replaced return addresses.
. "$(dirname "$0")/lib.sh"
compile returns.c <<'C'
#include "posix.h"
asm(R"(
push_ret: lea 1f(%rip), %rax; push %rax; ret; ud2
1:        mov $11, %eax; ret
pops:     push $30; push $12; call 1f; ret                       # ret n drops the arguments
1:        mov 8(%rsp), %rax; add 16(%rsp), %rax; ret $16
here:     call 1f; 1: pop %rax; lea 1b(%rip), %rdx; sub %rdx, %rax; ret
data:     call 1f; .quad 1234567; inc %rax; ret                  # data behind the call, skipped on return
1:        pop %rdx; mov (%rdx), %rax; add $8, %rdx; push %rdx; ret
drops:    call 1f; ud2
1:        add $8, %rsp; mov $5, %eax; ret                        # returns for its caller
replaced: call 1f; ud2
1:        lea 2f(%rip), %rdx; mov %rdx, (%rsp); ret
2:        mov $6, %eax; ret
chain:    lea 3f(%rip), %rdx; push %rdx; lea 2f(%rip), %rdx; push %rdx; lea 1f(%rip), %rdx; push %rdx; mov $1, %eax; ret
1:        add $10, %eax; ret
2:        imul $3, %eax, %eax; ret
3:        add $7, %eax; ret
as_push:  call 1f; 1: call 2f; 2: mov 8(%rsp), %rax; sub (%rsp), %rax; add $16, %rsp; ret
pop_jump: call 1f; inc %eax; ret
1:        mov $8, %eax; pop %rdx; jmp *%rdx
in_memory: sub $8, %rsp; lea 1f(%rip), %rax; mov %rax, (%rsp); ret
1:        mov $9, %eax; ret
own:      call 1f; 1: addq $(2f - 1b), (%rsp); ret; ud2          # a return to an address computed from its own
2:        mov $10, %eax; ret
)");
#define EACH(f) f(push_ret) f(pops) f(here) f(data) f(drops) f(replaced) f(chain) f(as_push) f(pop_jump) f(in_memory) f(own)
#define DECLARE(name) long name(void);
#define CALL(name) { long sum = 0; for (int i = 0; i < 20000; i++) sum += name(); printf("%s %ld\n", #name, sum); }
EACH(DECLARE)
int main() { EACH(CALL) }
C
same "$T/returns"
