# %gs in vector instructions, with zmm31, vector indices and rip, and in jumps and calls; what cannot be ends with one line.
. "$(dirname "$0")/lib.sh"
need_cpu fsgsbase avx512vl
compile vectors.c -mfsgsbase -no-pie <<'C'
#include "posix.h"
#include <immintrin.h>
uint64_t block[64], out[40];
static void callee(void) { out[39]++; }
int main() {
  for (int i = 0; i < 64; i++) block[i] = mix(7, i);
  block[40] = (uint64_t)callee;
  _writegsbase_u64((uint64_t)block);
  uint64_t index[4] = {1, 5, 9, 30}, flags = 0;
  for (int round = 0; round < 3; round++) asm volatile(R"(
    vmovdqu64 %%gs:0, %%zmm31; vpaddq %%gs:64(%1), %%zmm31, %%zmm31; vmovdqu64 %%zmm31, (%2); vmovdqu %%gs:8(%1,%3,8), %%ymm1; vmovdqu %%ymm1, 64(%2)
    vmovdqu64 %%zmm31, %%gs:128(%1); kxnorw %%k1, %%k1, %%k1; vmovdqu64 (%4), %%ymm20; vpgatherqq %%gs:(%1,%%ymm20,8), %%ymm31%{%%k1%}; vmovdqu64 %%ymm31, 96(%2)
    wrgsbase %1; stc; mov %%gs:block+8(%%rip), %%rax; vmovq %%gs:block+16(%%rip), %%xmm17; pushf; pop %0; mov %%rax, 128(%2); vmovq %%xmm17, 136(%2)
    lea -128(%%rsp), %%rsp; xor %%ecx, %%ecx; push %%gs:block; pop %%gs:block+192; call *%%gs:block+320(%1); mov $block, %%ecx; call *%%gs:320(%%rcx)
    lea 1f(%%rip), %%rax; mov %%rax, block+328; xor %%eax, %%eax; jmp *%%gs:block+328(%%rax); ud2; 1: lea 128(%%rsp), %%rsp; wrgsbase %5)"
    : "=&r"(flags) : "r"(0L), "r"(out), "r"(2L), "r"(index), "r"(block) : "rax", "rcx", "cc", "memory");
  for (int i = 0; i < 40; i++) printf("%lx\n", out[i]);
  printf("%lx %lx\n", flags & 0x8d5, block[24]);
}
C
sed -i 's/block+328(%%rax)/block+328(%%rax)/' "$T/vectors.c"; build "$T/vectors.c" "$T/vectors" -mfsgsbase -no-pie
same "$T/vectors"
compile odd.c <<<'char x; int main() { asm volatile("lods %%gs:(%%rsi), %%al" : : "S"(&x) : "al"); }'
expect_fail 125 'uses %gs in a way that is not supported; the process is ended' "$WEIR" run -q -- "$T/odd"
