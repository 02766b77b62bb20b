# Reading the selector of gs is no access through it: to a register, to memory, to the stack.
. "$(dirname "$0")/lib.sh"
need_cpu fsgsbase
compile selector.c -mfsgsbase <<'C'
#include "posix.h"
#include <immintrin.h>
int main() {
  uint64_t words[4] = {-1, -1, -1, -1}, base[64] = {0};
  _writegsbase_u64((uint64_t)base);
  asm volatile("mov %%gs, %0; mov %%gs, %%eax; mov %%rax, %1; lea -128(%%rsp), %%rsp; push %%gs; pop %2; lea 128(%%rsp), %%rsp" : "=m"(words[0]), "=m"(words[1]), "=r"(words[2]) : : "rax", "memory");
  printf("%lx %lx %lx\n", words[0], words[1], words[2]);
}
C
same "$T/selector"
