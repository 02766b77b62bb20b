# architecture, 'what it works means': code written through a second mapping of the same memory, as JITs under W^X do.
. "$(dirname "$0")/lib.sh"
compile dual.c <<'C'
#include "posix.h"
int main() {
  int fd = memfd_create("code", 0); ftruncate(fd, 65536); long sum = 0;
  char *rw = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), *rx = mmap(NULL, 65536, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
  for (int i = 0; i < 3000; i++) {               // new code in new places, then called often
    char *at = rw + i * 16; at[0] = 0xb8, memcpy(at + 1, &i, 4), at[5] = 0xc3;
    sum = sum * 3 + ((int (*)(void))(rx + i * 16))();
  }
  for (int i = 0; i < 3000; i++) sum = sum * 3 + ((int (*)(void))(rx + i * 16))();
  for (int i = 0; i < 200; i++) { memcpy(rw + 1, &i, 4); sum = sum * 3 + ((int (*)(void))rx)(); }      // and changed in place
  printf("%ld\n", sum);
}
C
same "$T/dual"
