# Three hundred threads at once.
. "$(dirname "$0")/lib.sh"
compile many.c -pthread <<'C'
#include "posix.h"
enum { N = 300 };
static pthread_barrier_t barrier; static uint64_t sums[N]; static __thread uint64_t mine;
static void *work(void *argument) {
  long n = (long)argument;
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < 5000; i++) { mine = mix(mine, i * n); if (i % 1000 == 0) sched_yield(); }
  pthread_barrier_wait(&barrier);
  sums[n] = mine;
  return (void *)(n * 2);
}
int main() {
  pthread_t threads[N]; pthread_attr_t small;
  pthread_attr_init(&small), pthread_attr_setstacksize(&small, 64 << 10);
  pthread_barrier_init(&barrier, NULL, N);
  for (long n = 0; n < N; n++) CHECK(pthread_create(&threads[n], &small, work, (void *)n) == 0);
  uint64_t sum = 0; long results = 0; void *result;
  for (int n = 0; n < N; n++) { pthread_join(threads[n], &result); results += (long)result; sum = mix(sum, sums[n]); }
  printf("%lx %ld\n", sum, results);
}
C
same "$T/many"
