# Futex-heavy code: mutexes, condition variables, rwlocks, semaphores, once.
. "$(dirname "$0")/lib.sh"
compile futex.c -pthread <<'C'
#include "posix.h"
enum { THREADS = 6, ROUNDS = 4000 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER; static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t slots; static long counter, under_rw, onces; static int turn;
static void first(void) { onces++; }
static void *work(void *argument) {
  long me = (long)argument;
  for (int i = 0; i < ROUNDS; i++) {
    pthread_once(&once, first);
    pthread_mutex_lock(&mutex); counter++; pthread_mutex_unlock(&mutex);
    sem_wait(&slots), sem_post(&slots);
    if (i % 8 == 0) pthread_rwlock_wrlock(&rw), under_rw++; else pthread_rwlock_rdlock(&rw);
    pthread_rwlock_unlock(&rw);
  }
  for (int i = 0; i < 200; i++) {
    pthread_mutex_lock(&mutex);
    while (turn != me) pthread_cond_wait(&turned, &mutex);
    turn = (turn + 1) % THREADS;
    pthread_cond_broadcast(&turned), pthread_mutex_unlock(&mutex);
  }
  return NULL;
}
int main() {
  pthread_t threads[THREADS];
  sem_init(&slots, 0, 2);
  for (long n = 0; n < THREADS; n++) pthread_create(&threads[n], NULL, work, (void *)n);
  for (int n = 0; n < THREADS; n++) pthread_join(threads[n], NULL);
  printf("%ld %ld %ld %d\n", counter, under_rw, onces, turn);
  struct timespec past = {1, 0};
  sem_init(&slots, 0, 0);
  CHECK(sem_timedwait(&slots, &past) == -1 && errno == ETIMEDOUT);
}
C
same "$T/futex"
