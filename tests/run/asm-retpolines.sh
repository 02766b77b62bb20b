# Retpolines of gcc, inline and as functions, for calls, jumps and returns, and one by hand.
. "$(dirname "$0")/lib.sh"
cat >"$T/retpoline.c" <<'C'
#include "posix.h"
static long f0(long x) { return x + 1; } static long f1(long x) { return x * 3; } static long f2(long x) { return x ^ 0x55; }
static long (*volatile functions[])(long) = {f0, f1, f2};
long by_hand(long (*)(long), long);
asm("by_hand: call 2f; 1: pause; lfence; jmp 1b; 2: mov %rdi, (%rsp); mov %rsi, %rdi; ret");
__attribute__((noinline)) static long choose(int n, long x) {
  switch (n) { case 0: return x + 3; case 1: return x - 9; case 2: return x * 5; case 3: return x ^ 77; case 4: return x << 1; case 5: return x | 1; default: return x; }
}
int main() {
  long x = 1;
  for (int i = 0; i < 300000; i++) { x = functions[i % 3](x); x = by_hand(functions[x & 1], x); x = choose(i % 7, x); }
  printf("%lx\n", x);
  for (int i = 0; i < 5; i++) qsort(functions, 0, 8, (void *)f0);
}
C
for flags in -mindirect-branch=thunk '-mindirect-branch=thunk -mfunction-return=thunk' '-mindirect-branch=thunk-inline -mfunction-return=thunk-inline' \
             '-mindirect-branch=thunk -mindirect-branch-register -fjump-tables -O3'; do
  build "$T/retpoline.c" "$T/retpoline" -fcf-protection=none $flags
  same "$T/retpoline"
done
