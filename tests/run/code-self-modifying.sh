# architecture, 'what it works means': programs that write code at run time: in writable and executable pages, without any system call.
. "$(dirname "$0")/lib.sh"
compile modify.c -Wl,--no-warn-rwx-segments <<'C'
#include "posix.h"
static char *area;
static void put(char *at, int value) { at[0] = 0xb8, memcpy(at + 1, &value, 4), at[5] = 0xc3; }
static int call(void *at) { return ((int (*)(void))at)(); }
int main() {
  long sum = 0; area = mmap(NULL, 65536, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int i = 0; i < 2000; i++) put(area, i), sum = sum * 3 + call(area);                             // the same place again and again
  printf("%ld\n", sum);
  for (int i = 0; i < 2000; i++) put(area + i * 16, i), sum = sum * 3 + call(area + i * 16);           // growing, like a JIT
  for (int i = 0; i < 2000; i++) sum = sum * 3 + call(area + i * 16);
  printf("%ld\n", sum);
  for (int i = 0; i < 500; i++) { area[40000] = 0xe9; int to = i % 7 * 16 - 40005; memcpy(area + 40001, &to, 4); sum = sum * 3 + call(area + 40000); }   // patched jumps
  printf("%ld\n", sum);
  memcpy(area + 4000, area, 1000), memmove(area + 4000, area + 4016, 900), printf("%d %d\n", call(area + 4000), call(area + 4016));
}
C
same "$T/modify"
