# Recursion a hundred thousand deep, direct, mutual, through pointers, with a limit set before.
. "$(dirname "$0")/lib.sh"
compile deep.c <<'C'
#include "posix.h"
typedef long step(long, long); static step *volatile pointers[2];
__attribute__((noipa)) static long a(long n, long x) { return n ? a(n - 1, x * 3 + n) * 5 + x : x; }
__attribute__((noipa)) static long b(long n, long x) { return n ? pointers[n & 1](n - 1, x + n) ^ x : 1; }
static long ackermann(long m, long n) { return !m ? n + 1 : !n ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1)); }
int main() {
  pointers[0] = a, pointers[1] = b;
  for (int i = 0; i < 10; i++) printf("%lx %lx\n", a(100000 + i, i), b(100000 + i, i));
  printf("%ld\n", ackermann(3, 8));
}
C
same "$T/deep"
same bash -c "ulimit -s 65536; exec $T/deep"
