// Holds a value in every vector (and mask) register across calls, indirect calls, system calls and signals whose
// handler clears them all. Built with -DREG=xmm|ymm|zmm -DCOUNT=16|32 -DBYTES=16|32|64 -DMOVE=movdqu|vmovdqu|vmovdqu64.
#include "posix.h"
#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)

static volatile int signals;
unsigned char values[COUNT][BYTES], results[COUNT][BYTES];
uint64_t masks[8], mask_results[8];

static void clear_all(int number, siginfo_t *info, void *context) {
  signals++;
#if BYTES == 64
  asm volatile("vpxorq %zmm0, %zmm0, %zmm0; vmovdqa64 %zmm0, %zmm9; vmovdqa64 %zmm0, %zmm31; kxorq %k1, %k1, %k1; vzeroall");
#elif BYTES == 32
  asm volatile("vzeroall");
#else
  asm volatile("pxor %xmm0, %xmm0; movdqa %xmm0, %xmm1; movdqa %xmm0, %xmm7; movdqa %xmm0, %xmm15");
#endif
}

// hold(loops, number): each round makes a call, an indirect call and, when number >= 0, that system call.
void hold(long loops, long number);
asm(".set bytes, " TEXT(BYTES) "; .set count, " TEXT(COUNT) R"(
.macro vectors load
.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
.if \n < count
.if \load
  )" TEXT(MOVE) " values + bytes * \\n(%rip), %" TEXT(REG) R"(\n
.else
  )" TEXT(MOVE) " %" TEXT(REG) R"(\n, results + bytes * \n(%rip)
.endif
.endif
.endr
.if bytes == 64
.irp n, 0, 1, 2, 3, 4, 5, 6, 7
.if \load
  kmovq masks + 8 * \n(%rip), %k\n
.else
  kmovq %k\n, mask_results + 8 * \n(%rip)
.endif
.endr
.endif
.endm
leaf: lea 1(%rdx), %rdx; ret
hold:
  push %rbx; push %rbp; mov %rdi, %rbx; mov %rsi, %rbp
  vectors 1
1: call leaf; call *leaf_pointer(%rip); test %rbp, %rbp; js 2f; mov %rbp, %rax; xor %edi, %edi; syscall
2: dec %rbx; jnz 1b
  vectors 0
  pop %rbp; pop %rbx; ret
.data
leaf_pointer: .quad leaf
.text)");

static void check(long loops, long number) {
  memset(results, 0, sizeof results), memset(mask_results, 0, sizeof mask_results);
  hold(loops, number);
  CHECK(memcmp(values, results, sizeof values) == 0);
  CHECK(BYTES != 64 || memcmp(masks, mask_results, sizeof masks) == 0);
}

int main() {
  uint64_t sum = 1;
  for (size_t i = 0; i < sizeof values; i++) ((unsigned char *)values)[i] = (sum = mix(sum, i)) >> 40;
  for (int i = 0; i < 8; i++) masks[i] = sum = mix(sum, i);
  check(1, -1), check(10000, -1), check(1000, SYS_getppid), check(100, SYS_sched_yield);
  on_signal(SIGALRM, clear_all, SA_RESTART), on_signal(SIGUSR1, clear_all, 0);
  struct itimerval often = {{0, 500}, {0, 500}};
  setitimer(ITIMER_REAL, &often, NULL);
  while (signals < 400) check(20000, -1), check(200, SYS_getppid);
  printf("%lx\n", sum);
}
