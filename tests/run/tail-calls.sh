# Ten million tail calls, mutual and through pointers.
. "$(dirname "$0")/lib.sh"
compile tail.c -foptimize-sibling-calls <<'C'
#include "posix.h"
#define NOT_SEEN_THROUGH __attribute__((noipa))
typedef long step(long, long);
static step *volatile steps[4];
NOT_SEEN_THROUGH static long odd(long n, long sum);
NOT_SEEN_THROUGH static long even(long n, long sum) { return n ? odd(n - 1, sum + n) : sum; }
NOT_SEEN_THROUGH static long odd(long n, long sum) { return n ? even(n - 1, sum ^ n) : -sum; }
NOT_SEEN_THROUGH static long a(long n, long sum) { return n ? steps[sum & 3](n - 1, sum * 5 + 1) : sum; }
NOT_SEEN_THROUGH static long b(long n, long sum) { return n ? steps[n & 3](n - 1, sum + n) : sum; }
int main() {
  steps[0] = a, steps[1] = b, steps[2] = b, steps[3] = a;
  printf("%ld %ld %ld\n", even(10000000, 0), odd(9999999, 0), a(3000000, 1));
}
C
same "$T/tail"
