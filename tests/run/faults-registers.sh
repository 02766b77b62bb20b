# A handler finds every register, flag and the exact address of the fault, changes them, and the program goes on.
. "$(dirname "$0")/lib.sh"
compile registers.c <<'C'
#include "posix.h"
enum { N = 16 };
static const int order[N] = {REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBP, REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RSP};
uint64_t after[N + 1], stack; extern char at_load[], at_store[], at_divide[], at_ud2[], at_int3[], behind_int3[], at_far[], at_hlt[];
static const struct { const char *name; char *address; int skip; } places[] = {{"load", at_load, 3}, {"store", at_store, 3}, {"divide", at_divide, 3}, {"ud2", at_ud2, 2}, {"int3", behind_int3, 0}, {"far", at_far, 3}, {"hlt", at_hlt, 1}};
static void handler(int number, siginfo_t *info, void *context) {
  greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs; int place = 0;
  while (place < 7 && r[REG_RIP] != (long)places[place].address) place++;
  CHECK(place < 7);
  printf("\n%s: signal %d code %d trap %lld error %llx flags %llx own stack %d:", places[place].name, number, info->si_code, r[REG_TRAPNO], r[REG_ERR], r[REG_EFL] & 0xcd5, r[REG_RSP] == stack);
  for (int i = 0; i < N - 1; i++) printf(" %llx", r[order[i]]), r[order[i]] = 0x100 * place + i;
  r[REG_EFL] ^= 0x8d5, r[REG_RIP] += places[place].skip;
}
asm(R"(
.macro each what; \what rax,0; \what rbx,1; \what rcx,2; \what rdx,3; \what rsi,4; \what rdi,5; \what rbp,6; \what r8,7; \what r9,8
\what r10,9; \what r11,10; \what r12,11; \what r13,12; \what r14,13; \what r15,14; .endm
.macro put reg, n; movabs $0x1111111111111111 * (\n + 1), %\reg; .endm
.macro get reg, n; mov %\reg, after + 8 * \n(%rip); .endm
.macro begin name
\name: push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; mov %rsp, stack(%rip); each put; mov $8, %ecx; cmp %ebx, %eax; .endm
.macro end; pushf; each get; pop after + 120(%rip); pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; ret; .endm
begin load;   at_load: mov (%rcx), %rdx; end
begin store;  at_store: mov %rdx, (%rcx); end
begin divide; mov $0, %ecx; at_divide: div %rcx; end
begin illegal; at_ud2: ud2; end
begin trap;   at_int3: int3; behind_int3: end
begin far;    at_far: add %rax, (%rbx); end              # not canonical
begin halt;   at_hlt: hlt; end
)");
void load(void), store(void), divide(void), illegal(void), trap(void), far(void), halt(void);
int main() {
  on_signal(SIGSEGV, handler, 0), on_signal(SIGFPE, handler, 0), on_signal(SIGILL, handler, 0), on_signal(SIGTRAP, handler, 0);
  void (*all[])(void) = {load, store, divide, illegal, trap, far, halt};
  for (int i = 0; i < 7; i++) for (int times = 0; times < 2; times++) {
    all[i]();
    after[N - 1] &= 0xcd5;
    printf("\nafter:"); for (int k = 0; k < N; k++) printf(" %lx", after[k]);
  }
}
C
# With a tool, registers and flags that are dead at the fault may hold what a probe left there.
TOOLS=none same "$T/registers"
