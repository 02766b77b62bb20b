# Code on the stack: the trampolines of nested functions.
. "$(dirname "$0")/lib.sh"
compile nested.c -Wno-trampolines -O0 -z execstack <<'C'
#include "posix.h"
static long apply(long (*f)(long), int n) { long sum = 0; for (int i = 0; i < n; i++) sum += f(i); return sum; }
static long outer(long k, int depth) {
  long calls = 0;
  long inner(long x) { calls++; return x * k + calls; }
  int compare(const void *a, const void *b) { return (*(int *)a - *(int *)b) * k; }
  int numbers[] = {5, 2, 9, 1}; qsort(numbers, 4, 4, compare);
  return apply(inner, 20) + numbers[0] + (depth ? outer(k + 1, depth - 1) : 0);
}
int main() { for (int i = 1; i < 200; i++) printf("%ld\n", outer(i, i % 10)); }
C
same "$T/nested"
