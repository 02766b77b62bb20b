# A function of two thousand cases and one of fifty thousand straight instructions.
. "$(dirname "$0")/lib.sh"
{
  echo '#include "posix.h"
  __attribute__((noinline)) static uint64_t pick(unsigned n, uint64_t x) { switch (n) {'
  for ((i = 0; i < 2000; i++)); do echo "case $i: x = x * $((i + 3)) + (x >> $((i % 60 + 1))); if (x & $((1 << i % 20))) x ^= n; break;"; done
  echo '} return x; }
  uint64_t straight(uint64_t);
  asm("straight: mov %rdi, %rax; .rept 50000; lea 3(%rax,%rax,2), %rax; .endr; ret");
  int main() { uint64_t x = 1; for (unsigned i = 0; i < 20000; i++) x = pick(i * 7 % 2003, x); printf("%lx %lx\n", x, straight(x)); }'
} >"$T/big.c"
build "$T/big.c" "$T/big" -O1
same "$T/big"
