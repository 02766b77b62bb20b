# Dlopen and dlclose in a loop, two libraries at the same addresses by turns, with constructors.
. "$(dirname "$0")/lib.sh"
for n in 1 2; do
  library part$n.c -DN=$n <<'C'
#include <stdio.h>
static int table[] = {5 * N, 7 * N, 11 * N}; static volatile int calls;
__attribute__((constructor)) static void hello(void) { calls = 100 * N; }
__attribute__((destructor)) static void bye(void) { if (calls % 10 == 3) printf("bye from %d after %d\n", N, calls); }
__attribute__((noinline)) static int local(int n) { calls++; switch (n) { case 0: return N; case 1: return N * 20; case 2: return N - 7; case 3: return -N; case 4: return N << 4; default: return table[n % 3]; } }
int value(int n) {
#if N == 1
  return local(n) * 3 + local(n + 1);
#else
  int sum = 0; for (int i = 0; i < n; i++) sum += local(i) * local(n - i); return sum + calls;
#endif
}
C
done
compile loop.c <<'C'
#include "posix.h"
int main(int argc, char **argv) {
  long sum = 0; void *addresses[2] = {}; int same = 0;
  for (int i = 0; i < 400; i++) {
    void *library = dlopen(argv[1 + i % 2], i % 3 ? RTLD_NOW : RTLD_LAZY); CHECK(library);
    int (*value)(int) = dlsym(library, "value");
    for (int n = 0; n < 7; n++) sum = sum * 31 + value(n);
    CHECK(dlclose(library) == 0 && !dlopen(argv[1 + i % 2], RTLD_NOLOAD | RTLD_NOW));
  }
  printf("%ld %s\n", sum, dlopen("/nonexistent.so", RTLD_NOW) ? "" : dlerror());
}
C
same "$T/loop" "$T/libpart1.so" "$T/libpart2.so"
