# Code written, protected, called, unmapped, and other code at the same address; moved, replaced and file mappings.
. "$(dirname "$0")/lib.sh"
compile remap.c -D_GNU_SOURCE <<'C'
#include "posix.h"
static int put(char *at, int value) { memcpy(at, "\xb8\0\0\0\0\xc3", 6); memcpy(at + 1, &value, 4); }       // mov $value, %eax; ret
static int call(void *at) { return ((int (*)(void))at)(); }
int main() {
  long sum = 0; int code = PROT_READ | PROT_EXEC, data = PROT_READ | PROT_WRITE, anonymous = MAP_PRIVATE | MAP_ANONYMOUS;
  char *place = mmap(NULL, 8192, data, anonymous, -1, 0);
  for (int i = 0; i < 500; i++) {                                            // a new mapping at the same place
    munmap(place, 8192);
    CHECK(mmap(place, 8192, data, anonymous | MAP_FIXED, -1, 0) == place);
    put(place + i % 3 * 16, i), mprotect(place, 8192, code), sum = sum * 7 + call(place + i % 3 * 16);
  }
  printf("%ld\n", sum);
  for (int i = 0; i < 500; i++) mprotect(place, 8192, data), put(place, i), mprotect(place, 8192, code), sum = sum * 7 + call(place);   // rewritten
  printf("%ld\n", sum);
  for (int i = 0; i < 200; i++) {                                            // mapped over, without munmap
    char *other = mmap(NULL, 8192, data, anonymous, -1, 0); put(other + 100, -i), mprotect(other, 8192, code), sum = sum * 7 + call(other + 100);
    CHECK(mremap(other, 8192, 8192, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place), sum = sum * 7 + call(place + 100);
  }
  printf("%ld\n", sum);
  int file = open("code", O_RDWR | O_CREAT, 0755); char bytes[4096] = {};
  for (int i = 0; i < 100; i++) {                                            // from a file that changes between mappings
    put(bytes, i * 3), pwrite(file, bytes, 4096, 0);
    char *mapped = mmap(NULL, 4096, code, i % 2 ? MAP_SHARED : MAP_PRIVATE, file, 0); sum = sum * 7 + call(mapped), munmap(mapped, 4096);
  }
  printf("%ld\n", sum);
  for (int i = 0; i < 100; i++) {                                            // dropped contents
    char *zero = mmap(NULL, 4096, data | PROT_EXEC, anonymous, -1, 0); put(zero, i); sum = sum * 7 + call(zero);
    madvise(zero, 4096, MADV_DONTNEED), CHECK(zero[0] == 0), put(zero, i + 1), sum = sum * 7 + call(zero), munmap(zero, 4096);
  }
  printf("%ld\n", sum);
}
C
same "$T/remap"
