# Written code of any length is looked at each time it is entered, whichever byte of it has changed; registers, flags and masks that
# the program holds meanwhile stay, also where signals come in between.
. "$(dirname "$0")/lib.sh"
compile guards.c -O1 -mno-red-zone <<'C'
#include "posix.h"
#include <sys/time.h>
typedef unsigned Function(unsigned);
static volatile unsigned ticks;
static void tick(int n) { ticks += n > 0; }
// Calls f with zmm30, k7 and the carry flag set, and says what is left of them.
__attribute__((target("avx512f,avx512bw"))) static int keeps(Function *f, unsigned n, unsigned *result) {
  unsigned long word[8], mask = 0x123456789abcdef0ul + n, after = 0, carry = 0;
  for (int i = 0; i < 8; i++) word[i] = n * 77777777777ul + i;
  unsigned long was[8];
  __asm__ volatile("vmovdqu64 %[w], %%zmm30; kmovq %[m], %%k7; stc; mov %[n], %%edi; call *%[f]; mov %%eax, %[r];"
                   "setc %b[c]; vmovdqu64 %%zmm30, %[was]; kmovq %%k7, %[a]"
                   : [was] "=m"(was), [a] "=r"(after), [c] "+r"(carry), [r] "=m"(*result)
                   : [w] "m"(word), [m] "r"(mask), [n] "r"(n), [f] "r"(f)
                   : "rax", "rcx", "rdx", "rdi", "rsi", "r8", "r9", "r10", "r11", "cc", "memory");
  return after == mask && carry && !memcmp(was, word, sizeof was);
}
int main() {
  __builtin_cpu_init();
  int wide = __builtin_cpu_supports("avx512bw");
  unsigned char *code = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(code != MAP_FAILED);
  signal(SIGALRM, tick);
  struct itimerval often = {{0, 500}, {0, 500}};
  setitimer(ITIMER_REAL, &often, NULL);
  unsigned long sum = 0, lost = 0;
  for (int length = 0; length < 300; length += length < 80 ? 1 : 13) {
    unsigned char *f = code + length * 1024 + length % 7, *p = f;
    *p++ = 0x89, *p++ = 0xf8;                                                        // mov %edi, %eax
    for (int i = 0; i < length; i++) p[0] = 0x8d, p[1] = 0x40, p[2] = i % 100, p += 3;  // lea i(%rax), %eax
    *p = 0xc3;
    for (int turn = 0; turn < 40; turn++) {
      unsigned n = 0;
      if (wide) lost += !keeps((Function *)f, turn, &n);
      else n = ((Function *)f)(turn);
      sum = sum * 31 + n;
      if (length) f[2 + 3 * (turn * 7 % length) + 2]++;
    }
  }
  while (!ticks) {}
  printf("%lu %lu\n", sum, lost);
  return 0;
}
C
same "$T/guards"
