// Calls and returns, nothing else.
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline, noclone)) static long fib(long n) {
  if (n < 2) return n;
  return fib(n - 1) + fib(n - 2);
}

int main(int argc, char** argv) {
  printf("%ld\n", fib(argc > 1 ? atol(argv[1]) : 38));
}
