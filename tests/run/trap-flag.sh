# A program that single-steps itself sees its own instructions, each once, with its own registers; and the flag where it looks.
. "$(dirname "$0")/lib.sh"
compile step.c <<'C'
#include "posix.h"
static volatile int traps; static uint64_t seen; static char *base;
static void on_trap(int number, siginfo_t *info, void *context) {
  greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
  traps++;
  CHECK((char *)r[REG_RIP] == (char *)info->si_addr);
  if ((char *)r[REG_RIP] >= base && (char *)r[REG_RIP] < base + 4096) seen = mix(mix(seen, r[REG_RIP] - (greg_t)base), r[REG_EFL] & 0x100);
  if (traps > 5000) r[REG_EFL] &= ~0x100;
}
static void turn_on(int number, siginfo_t *info, void *context) { ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] |= 0x100; }
__attribute__((noipa)) static uint64_t fib(uint64_t n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static void report(const char *what) { printf("%s: %d steps, %lx\n", what, traps, seen); traps = 0; seen = 0; }
#define ON "cmp %%rsp, %%rsp; pushfq; orq $0x100, (%%rsp); popfq; "
#define OFF "pushfq; andq $~0x100, (%%rsp); popfq; "
int main() {
  on_signal(SIGTRAP, on_trap, 0); on_signal(SIGUSR1, turn_on, 0);
  base = (char *)(((uint64_t)&main) & ~4095ul);
  uint64_t v = 0, w = 0; char from[16] = "some more bytes", to[16];
  asm volatile(ON "nop; jmp 1f; 1: add $5, %0; call 2f; jmp 3f; 2: ret; 3: " OFF "nop" : "+b"(v)::"rax", "memory", "cc");
  CHECK(v == 5); report("jump, call, return");
  asm volatile(ON "mov $3, %%ecx; 1: loop 1b; pushfq; pop %0; " OFF : "+b"(v)::"rax", "rcx", "memory", "cc");
  CHECK(v & 0x100); v = 0; report("loop, and the flag");
  asm volatile(ON "mov %1, %%rsi; mov %2, %%rdi; mov $16, %%ecx; rep movsb; " OFF : "+b"(v) : "r"(from), "r"(to) : "rax", "rcx", "rsi", "rdi", "memory", "cc");
  CHECK(!memcmp(from, to, 16)); report("repeated");
  asm volatile(ON "mov $39, %%eax; syscall; test %%rax, %%rax; setg %b0; nop; " OFF : "+b"(v)::"rax", "rcx", "r11", "memory", "cc");
  CHECK(v == 1); v = 0; report("system call");
  asm volatile(ON "mov $12, %%edi; call *%1; mov %%rax, %0; " OFF : "+b"(v) : "r"(fib) : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
  CHECK(v == 144); report("indirect call, many calls");
  raise(SIGUSR1);
  asm volatile("nop; nop; " OFF "nop" : "+b"(w)::"rax", "memory", "cc");
  CHECK(traps > 5); traps = 0;  // (how many instructions are on the way out of raise is the library's affair)
  puts("by a frame");
}
C
same "$T/step"
