# Code in the middle of memory that the program has reserved: its translation finds room in a small gap near it. Where there is none it is far
# away, and runs all the same.
. "$(dirname "$0")/lib.sh"
compile narrow.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
int main(int argc, char **argv) {
  size_t G = 1ul << 30, M = 1ul << 20, gap = atoi(argv[1]) * M;
  char *all = mmap(0, 8 * G, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), *code = all + 4 * G;
  if (gap) munmap((char *)(((size_t)code + 200 * M) & ~(gap - 1)), 2 * gap);
  mprotect(code, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
  long sum = 0;
  for (int i = 0; i < 5; i++) {
    unsigned char bytes[] = {0x48, 0x8d, 0x05, i, 0, 0, 0, 0xc3};  // lea rax, [rip + i]; ret
    memcpy(code, bytes, sizeof bytes);
    sum += ((char *(*)(void))code)() - code;
  }
  printf("%ld\n", sum);
}
C
same "$T/narrow" 32
same "$T/narrow" 16
same "$T/narrow" 0
