# Ten thousand threads that live for a moment, four at a time.
. "$(dirname "$0")/lib.sh"
compile churn.c -pthread <<'C'
#include "posix.h"
static long total; static __thread long mine;
static void *work(void *argument) { mine += (long)argument; __atomic_fetch_add(&total, mine, __ATOMIC_RELAXED); return NULL; }
int main() {
  for (long n = 0; n < 10000; n += 4) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, work, (void *)(n + i)) == 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  }
  printf("%ld\n", total);
}
C
same "$T/churn"
