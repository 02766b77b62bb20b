# Data below the stack pointer of a leaf function survives signals and everything else.
. "$(dirname "$0")/lib.sh"
compile redzone.c <<'C'
#include "posix.h"
static volatile int signals;
static void tick(int number, siginfo_t *info, void *context) { char room[2000]; memset(room, 0xee, sizeof room); asm volatile("" : : "r"(room) : "memory"); signals++; }
long leaf(long seed, long loops);
asm(R"(
leaf:                                   # fills 128 bytes below rsp, works on them for a while, adds them up
.set i, 8
.rept 16
  lea i(%rdi), %rax; mov %rax, -i(%rsp)
.set i, i + 8
.endr
1: mov -8(%rsp), %rax; add -128(%rsp), %rax; rol $7, %rax; mov %rax, -8(%rsp); incq -64(%rsp); jmp *target(%rip)
2: dec %rsi; jnz 1b
  xor %eax, %eax
.set i, 8
.rept 16
  rol $3, %rax; add -i(%rsp), %rax
.set i, i + 8
.endr
  ret
.data
target: .quad 2b
.text)");
int main() {
  on_signal(SIGALRM, tick, 0);
  long expected = leaf(5, 100000);
  struct itimerval often = {{0, 300}, {0, 300}};
  setitimer(ITIMER_REAL, &often, NULL);
  while (signals < 500) CHECK(leaf(5, 100000) == expected);
  printf("%lx\n", expected);
}
C
same "$T/redzone"
