# Iretq and lretq stay in the cache: what follows them is the program under Weir, with its own %gs. Wine enters threads so.
. "$(dirname "$0")/lib.sh"
compile far.c -mno-red-zone <<'C'
#include "posix.h"
#include <asm/prctl.h>
static uint64_t block[4]; static volatile int signals; static char other[4096];
static uint64_t load() { uint64_t value; asm volatile("mov %%gs:8, %0" : "=r"(value)); return value; }
static void tick(int number) { signals++; }
static uint64_t interrupt_return(uint64_t code) {  // on another stack, with CF and OF set
  uint64_t flags, rsp;
  asm volatile("mov %%rsp, %%rbx; mov %%ss, %%eax; push %%rax; push %3; push $0xa03; push %2; lea 1f(%%rip), %%rax; push %%rax; mov $77, %%ecx\n"
               "iretq\n ud2\n 1: pushf; pop %0; mov %%rsp, %1; mov %%rbx, %%rsp; sub $77, %%rcx; add %%rcx, %0"
               : "=&r"(flags), "=&r"(rsp) : "r"(code), "r"(other + 4000) : "rax", "rbx", "rcx", "memory", "cc");
  CHECK(rsp == (uint64_t)other + 4000);
  return flags & 0xcd5;
}
static void far_return() { asm volatile("mov %%cs, %%eax; push %%rax; lea 1f(%%rip), %%rax; push %%rax; lretq\n 1:" : : : "rax", "memory"); }
static void bad(int number, siginfo_t *info, void *context) {
  greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs; unsigned char *pc = (void *)r[REG_RIP];
  printf("fault at %02x %02x\n", pc[0], pc[1]);
  ((uint64_t *)r[REG_RSP])[1] = 0x33;
}
int main() {
  syscall(SYS_arch_prctl, ARCH_SET_GS, block); block[1] = 5;
  uint64_t sum = 0, code; asm("mov %%cs, %0" : "=r"(code));
  for (int i = 0; i < 1000; i++) sum += interrupt_return(code) + load(), far_return(), sum += load();
  printf("%lu\n", sum), fflush(stdout);
  struct sigaction fault = {.sa_sigaction = bad, .sa_flags = SA_SIGINFO}; sigaction(SIGSEGV, &fault, NULL);
  printf("%lx\n", interrupt_return(0x70)), fflush(stdout);
  signal(SIGALRM, tick); struct itimerval often = {{0, 500}, {0, 500}}; setitimer(ITIMER_REAL, &often, NULL);
  while (signals < 100) CHECK(interrupt_return(code) == 0x801 && load() == 5);
  puts("end");
}
C
same "$T/far"
