# Room for code at an address of the program's own choice, which has the low 32 bits of code that there is: it is given there.
. "$(dirname "$0")/lib.sh"
compile hint.c <<'C'
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
int main() {
  static const unsigned char code[] = {0x8d, 0x47, 0x07, 0xc3};  // lea eax, [rdi + 7]; ret
  long sum = 0;
  for (uintptr_t k = 3; k < 6; k++) {
    void *hint = (void *)(((uintptr_t)main & 0xfffff000) | k << 36);
    unsigned char *p = mmap(hint, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED || mprotect(p, 4096, PROT_READ | PROT_WRITE | PROT_EXEC)) return 1;
    memcpy(p, code, sizeof code);
    sum += p == hint;
    sum += ((int (*)(int))p)(35);
  }
  printf("%ld\n", sum);
}
C
same "$T/hint"
