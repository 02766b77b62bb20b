# spec 3, S8: a stack that was seen, is unmapped, and whose place a smaller one takes: what was above it is not read.
. "$(dirname "$0")/lib.sh"
compile replaced.c -fno-omit-frame-pointer <<'C'
#include "posix.h"
// spin_with(rsp, rbp): computes with these registers, and comes back.
uint64_t spin_with(uint64_t rsp, uint64_t rbp, uint64_t rounds);
__asm__(".globl spin_with\n.type spin_with,@function\nspin_with: push %rbp\npush %rbx\nmov %rsp,%rbx\nmov %rdi,%rsp\nmov %rsi,%rbp\n"
        "1: dec %rdx\njnz 1b\nmov %rbx,%rsp\npop %rbx\npop %rbp\nret\n.size spin_with,.-spin_with");
int main() {
  for (unsigned i = 0; i < 20; i++) {
    char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    spin_with((uint64_t)stack + 65280, 0, 20000000);
    munmap(stack + 61440, 4096);
    spin_with((uint64_t)stack + 57344, (uint64_t)stack + 61440, 5000000);
    munmap(stack, 61440);
  }
  puts("right");
}
C
for unwind in auto fp heuristic; do OPTIONS=--unwind=$unwind RATE=2000 sampled "$T/replaced"; done
