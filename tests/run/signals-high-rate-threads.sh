# Signals at a high rate to several threads, which also create threads, lock and make system calls.
. "$(dirname "$0")/lib.sh"
compile rate.c -pthread <<'C'
#include "posix.h"
enum { THREADS = 4 };
static __thread volatile int mine; static volatile int stop; static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; static long shared;
static void tick(int number, siginfo_t *info, void *context) { mine++; }
static void *nothing(void *x) { return x; }
static void *work(void *argument) {
  uint64_t sum = 0, first = 0;
  for (long round = 0; mine < 400 || round < 2; round++) {
    for (int i = 0; i < 20000; i++) sum = mix(sum, i);
    if (round == 0) first = sum; else CHECK(sum == first);
    sum = 0;
    for (int i = 0; i < 50; i++) { pthread_mutex_lock(&mutex); shared++; pthread_mutex_unlock(&mutex); getppid(); }
    pthread_t other; void *result;
    if (round % 8 == 0) { CHECK(!pthread_create(&other, NULL, nothing, argument)); pthread_join(other, &result); CHECK(result == argument); }
  }
  return (void *)first;
}
int main() {
  on_signal(SIGUSR1, tick, SA_RESTART);
  pthread_t threads[THREADS]; void *results[THREADS]; sigset_t set; int joined = 0;
  for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
  for (int i = 0; i < THREADS; i++)
    while (pthread_tryjoin_np(threads[i], &results[i])) {
      for (int k = i; k < THREADS; k++) pthread_kill(threads[k], SIGUSR1);
      usleep(150);
    }
  for (int i = 0; i < THREADS; i++) printf("%lx\n", (long)results[i]);
}
C
same "$T/rate"
