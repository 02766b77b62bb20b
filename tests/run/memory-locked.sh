# Mlockall would make all of Weir's sparse memory, and holds Weir to the program's limit: it succeeds, or fails, as natively, and all goes on.
. "$(dirname "$0")/lib.sh"
compile locked.c -ldl -pthread <<'C'
#include "posix.h"
typedef int Function(void);
static void *thread(void *p) { return p; }
int main() {
  for (int flags = 0; flags < 10; flags++) {
    printf("%d: %d\n", flags, mlockall(flags));
    unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(code != MAP_FAILED);
    memcpy(code, "\xb8\x07\0\0\0\xc3", 6);
    pthread_attr_t small;
    pthread_t t;
    pthread_attr_init(&small), pthread_attr_setstacksize(&small, 65536);
    CHECK(((Function *)code)() == 7 && pthread_create(&t, &small, thread, NULL) == 0 && pthread_join(t, NULL) == 0);
    if (flags == 3) CHECK(dlopen("libm.so.6", RTLD_NOW));
  }
  printf("%d\n", munlockall());
  return 0;
}
C
same "$T/locked"
