# Executed instructions equal those of a single-stepped native run: a static C program with libc, recursion, a switch, qsort.
. "$(dirname "$0")/lib.sh"
compile mix.c -static <<'C'
#include "posix.h"
static int compare(const void *a, const void *b) { return *(int *)a - *(int *)b; }
static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static int pick(int n) { switch (n % 8) { case 0: return 3; case 1: return n; case 2: return n * n; case 3: return -n; case 4: return n ^ 5; case 5: return 9; case 6: return n / 3; } return 1; }
int main() {
  static jmp_buf back; int numbers[60], sum = 0; volatile int jumps = 0;
  for (int i = 0; i < 60; i++) numbers[i] = i * 7919 % 61, sum += pick(i);
  qsort(numbers, 60, sizeof *numbers, compare);
  if (setjmp(back) < 5) longjmp(back, ++jumps);
  char text[100]; sprintf(text, "%d %d %d %.3f", fib(10), sum, numbers[7], 2.5); memset(text + 50, 'x', 40);
  puts(text);
  return 5;
}
C
oracle "$T/mix"
