# Rare encodings run as native: cpuid, xgetbv, rdtscp, BMI, cmpxchg16b, movbe, crc32, prefetch, long no-ops.
. "$(dirname "$0")/lib.sh"
need_cpu abm rdpid bmi2 movbe sse4_2 cx16 rdtscp
compile rare.c <<'C'
#include "posix.h"
#define RUN(text) do { uint64_t a = 0x123456789abcdef, b = 0xfedcba98, c = 5, d = 7, f; \
  asm volatile("push %%rbx; mov %1, %%rbx; xor %%r8d, %%r8d; " text "; pushf; pop %4; mov %%rbx, %1; pop %%rbx" : "+a"(a), "+&r"(b), "+c"(c), "+d"(d), "=&r"(f) : : "r8", "r9", "xmm0", "xmm1", "memory", "cc"); \
  printf("%s: %lx %lx %lx %lx %lx\n", text, a, b, c, d, f & 0x8d5); } while (0)
uint64_t memory[8] __attribute__((aligned(64))) = {1, 2, 3, 4};
int main() {
  RUN("bswap %%rax"); RUN("crc32q %%rbx, %%rax"); RUN("pdep %%rbx, %%rax, %%rcx"); RUN("pext %%rbx, %%rax, %%rcx"); RUN("mulx %%rbx, %%rcx, %%r9; mov %%r9, %%rdx"); RUN("andn %%rbx, %%rax, %%rcx"); RUN("shld $13, %%rbx, %%rax"); RUN("rorx $7, %%rax, %%rcx; sarx %%rcx, %%rbx, %%rdx");
  RUN("lzcnt %%rax, %%rcx"); RUN("tzcnt %%rbx, %%rcx"); RUN("popcnt %%rax, %%rcx"); RUN("bt %%rcx, %%rax"); RUN("btsl $3, %%ebx"); RUN("imul %%rbx"); RUN("xadd %%rax, %%rbx"); RUN("cqto"); RUN("cwtl"); RUN("sahf; lahf"); RUN("stc; rcl $3, %%rax"); RUN("xchg %%al, %%ah");
  RUN("lea memory(%%rip), %%r9; movbe (%%r9), %%rax"); RUN("lea memory+16(%%rip), %%r9; mov $3, %%eax; mov $4, %%edx; lock cmpxchg16b (%%r9); mov (%%r9), %%rcx"); RUN("lea memory(%%rip), %%rbx; mov $9, %%eax; xlat; xor %%ebx, %%ebx");
  RUN("prefetcht0 memory(%%rip); prefetchw memory(%%rip); clflush memory(%%rip); mfence; sfence; lfence"); RUN(".byte 0x66, 0x66, 0x66, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0; nop; pause; endbr64; .byte 0xf3, 0x0f, 0x1e, 0xc8");
  RUN("xor %%ecx, %%ecx; xgetbv"); RUN("mov $0, %%eax; xor %%ecx, %%ecx; cpuid"); RUN("mov $7, %%eax; xor %%ecx, %%ecx; cpuid; mov $0, %%edx"); RUN("rdtscp; mov $0, %%eax; mov $0, %%edx; mov $0, %%ecx"); RUN("rdpid %%rcx; xor %%ecx, %%ecx");
  RUN("movq %%rax, %%xmm0; pshufb %%xmm0, %%xmm0; pclmulqdq $1, %%xmm0, %%xmm0; aesenc %%xmm0, %%xmm0; movq %%xmm0, %%rcx"); RUN("mov $0x40, %%ah; sahf; movmskpd %%xmm8, %%ecx; xor %%ecx, %%ecx"); RUN("xor %%r9d, %%r9d; .byte 0x2e, 0x36, 0x3e, 0x26; add %%rax, %%rbx");
}
C
same "$T/rare"
