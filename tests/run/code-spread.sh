# Pieces of code all over the address space, more of them than there are code caches near any: they share those that are far away.
. "$(dirname "$0")/lib.sh"
compile spread.c <<'C'
#include "posix.h"
typedef int Function(int);
int main() {
  static Function *functions[300];
  unsigned long seed = 12345, sum = 0;
  int count = 0;
  while (count < 300) {
    seed = seed * 6364136223846793005ul + 1442695040888963407ul;
    char *at = (char *)(seed >> 17 & 0x3fffffff0000ul), *p = mmap(at, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (p == MAP_FAILED) continue;
    memcpy(p, "\x8d\x47\x01\xc3", 4);  // lea 1(%rdi), %eax ; ret
    CHECK(mprotect(p, 4096, PROT_READ | PROT_EXEC) == 0);
    functions[count++] = (Function *)p;
  }
  for (int round = 0; round < 3; round++)
    for (int i = 0; i < count; i++) sum = sum * 31 + functions[i](i);
  printf("%lu\n", sum);
  return 0;
}
C
same "$T/spread"
