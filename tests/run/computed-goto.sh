# Computed goto: an interpreter of threaded code.
. "$(dirname "$0")/lib.sh"
cat >"$T/goto.c" <<'C'
#include "posix.h"
int main() {
  static void *labels[] = {&&add, &&shift, &&xor, &&push, &&pop, &&loop, &&halt};
  static const unsigned char program[] = {0, 3, 1, 2, 3, 0, 4, 2, 1, 4, 0, 5, 6};
  uint64_t acc = 1, stack[8], left = 300000; int pc = 0, top = 0;
#define NEXT goto *labels[program[pc++]]
  NEXT;
add: acc += 0x9e3779b9; NEXT;
shift: acc = acc << 5 | acc >> 59; NEXT;
xor: acc ^= acc >> 11; NEXT;
push: stack[top++] = acc; NEXT;
pop: acc += stack[--top]; NEXT;
loop: if (--left) pc = 0; NEXT;
halt: printf("%lx\n", acc);
}
C
for flags in -O2 '-O2 -fno-pie -no-pie' -O0 '-Os -static'; do
  build "$T/goto.c" "$T/goto" $flags
  same "$T/goto"
done
