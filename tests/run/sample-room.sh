# Weir's memory does not divide the address space: 64 TiB in one piece are still to be had, and sanitizers find their places.
. "$(dirname "$0")/lib.sh"
compile huge.c <<'S'
#include <stdio.h>
#include <sys/mman.h>
int main(void) {
  for (int i = 0; i < 2000; i++) {
    void* p = mmap(0, 1ul << 46, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return perror("mmap"), 1;
    munmap(p, 1ul << 46);
  }
  puts("done");
}
S
sampled "$T/huge"
for sanitizer in address thread; do
  compile "$sanitizer.c" -fsanitize=$sanitizer -g <<'S'
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  unsigned long sum = 0;
  for (unsigned i = 0; i < 200000; i++) {
    char* p = malloc(i % 100 + 1);
    p[i % (i % 100 + 1)] = (char)i, sum += (unsigned char)p[i % (i % 100 + 1)];
    free(p);
  }
  printf("%lu\n", sum);
}
S
  sampled "$T/$sanitizer"
done
