# Signals directed at threads and at the process, masks for each thread, a fatal one in a thread.
. "$(dirname "$0")/lib.sh"
compile directed.c -pthread <<'C'
#include "posix.h"
static __thread long me; static volatile long got[5]; static pthread_barrier_t barrier; static volatile int stop;
static void handler(int number, siginfo_t *info, void *context) { __atomic_fetch_add(&got[me], 1, __ATOMIC_SEQ_CST); }
static void *work(void *argument) {
  me = (long)argument;
  sigset_t set; sigemptyset(&set), sigaddset(&set, SIGUSR2);
  if (me != 3) pthread_sigmask(SIG_BLOCK, &set, NULL);
  pthread_barrier_wait(&barrier);
  while (!stop) if (me % 2) usleep(300);
  return NULL;
}
static void *crash(void *argument) { *(volatile int *)argument = 1; return NULL; }
int main(int argc, char **argv) {
  pthread_t threads[5]; sigset_t set; sigemptyset(&set), sigaddset(&set, SIGUSR2);
  on_signal(SIGUSR1, handler, 0), on_signal(SIGUSR2, handler, 0);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  sigset_t none; sigemptyset(&none);
  pthread_barrier_init(&barrier, NULL, 5);
  for (long i = 1; i < 5; i++) { pthread_create(&threads[i], NULL, work, (void *)i); }
  pthread_sigmask(SIG_BLOCK, NULL, &none);
  pthread_barrier_wait(&barrier);
  pthread_kill(threads[3], SIGUSR2);
  for (long i = 1; i < 5; i++) for (int n = 1; n <= 50; n++) { long before = got[i]; pthread_kill(threads[i], SIGUSR1); while (got[i] == before && !(i == 3 && 0)) sched_yield(); }
  printf("%ld %ld %ld\n", got[1], got[2], got[4]);
  stop = 1; for (int i = 1; i < 5; i++) pthread_join(threads[i], NULL);
  printf("blocked here, pending %d\n", ({ raise(SIGUSR2); sigpending(&none); sigismember(&none, SIGUSR2); })), fflush(stdout);
  pthread_create(&threads[0], NULL, crash, NULL), pthread_join(threads[0], NULL);
}
C
STATUS=139 same "$T/directed"
