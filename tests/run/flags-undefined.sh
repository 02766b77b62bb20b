# Flags that the manuals call undefined after an instruction are those of the processor, with probes too.
. "$(dirname "$0")/lib.sh"
compile undefined.c <<'C'
#include "posix.h"
#define SHOW(NAME, CODE) for (int i = 0; i < 4; i++) { uint64_t f = i & 1 ? 0x8d5 : 0, a = 7 * i + 3; \
  asm volatile("lea -128(%%rsp), %%rsp; push %0; popf; jmp 1f; 1:" CODE "; pushf; pop %0; lea 128(%%rsp), %%rsp" : "+r"(f), "+a"(a) : "c"(5L * i + 1), "d"(0L)); \
  printf("%s %lx\n", NAME, f & 0x8d5); }
int main() {
  SHOW("imul", "imul %%rcx, %%rax") SHOW("mul", "mul %%rcx") SHOW("div", "div %%rcx") SHOW("bsf", "bsf %%rcx, %%rax") SHOW("bt", "bt %%ecx, %%eax")
  SHOW("shld", "shld $3, %%rcx, %%rax") SHOW("and", "and %%rcx, %%rax") SHOW("test", "test %%rcx, %%rax") SHOW("lzcnt", "lzcnt %%rcx, %%rax") SHOW("rol", "rol $9, %%rax")
}
C
same "$T/undefined"
