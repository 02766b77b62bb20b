# spec 3, S8: stacks that are broken on purpose, or lie beside memory that is not there: the walk is cut off and counted, the program goes on.
. "$(dirname "$0")/lib.sh"
compile broken.c -fno-omit-frame-pointer <<'C'
#include "posix.h"
// spin_with(rsp, rbp): computes with these registers, and comes back.
uint64_t spin_with(uint64_t rsp, uint64_t rbp, uint64_t rounds);
__asm__(".globl spin_with\n.type spin_with,@function\nspin_with: push %rbp\npush %rbx\nmov %rsp,%rbx\nmov %rdi,%rsp\nmov %rsi,%rbp\n"
        "1: dec %rdx\njnz 1b\nmov %rbx,%rsp\npop %rbx\npop %rbp\nret\n.size spin_with,.-spin_with");
int main() {
  char *room = mmap(NULL, 20 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(room, 4096, PROT_NONE), mprotect(room + 18 * 4096, 4096, PROT_NONE), munmap(room + 19 * 4096, 4096);
  uint64_t top = (uint64_t)(room + 18 * 4096), *words = (uint64_t *)(top - 4096), own;
  uint64_t bad[] = {0, 8, top, top - 8, top + 4096, 0x00007ffffffff000, 0x8000000000000000, ~0ull, (uint64_t)&main, (uint64_t)&own, (uint64_t)&own | 1, 0x550000000000, 0x551000000000};
  for (unsigned round = 0; round < 3; round++) {
    for (unsigned i = 0; i < 512; i++) words[i] = round == 0 ? 0 : round == 1 ? (uint64_t)&words[i] + 1 : bad[i % (sizeof bad / sizeof *bad)];
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) spin_with(top - 16, bad[i], 5000000), spin_with(top - 2048, bad[i], 5000000);
  }
  puts("right");
}
C
for unwind in auto cfi heuristic; do OPTIONS=--unwind=$unwind RATE=2000 sampled "$T/broken"; done
OPTIONS=--unwind=fp RATE=2000 sampled "$T/broken"
(($(ask 'SELECT truncated FROM sampling') > 0)) || fail "nothing was cut off: $(report)"
# A return address that is overwritten kills the program as it does natively.
compile smashed.c <<'C'
#include "posix.h"
__attribute__((noipa)) static void smash(void) { ((uint64_t *)__builtin_frame_address(0))[1] = 0x1234; for (volatile long n = 0; n < 50000000; n++) {} }
int main() { smash(); }
C
STATUS=139 RATE=5000 sampled "$T/smashed"
