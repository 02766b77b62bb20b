# Fork in a threaded program, from any thread, with atfork handlers, while others work.
. "$(dirname "$0")/lib.sh"
compile forks.c -pthread <<'C'
#include "posix.h"
static volatile int stop; static long prepared, parents, children; static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void prepare(void) { pthread_mutex_lock(&mutex); prepared++; }
static void parent(void) { parents++; pthread_mutex_unlock(&mutex); }
static void child(void) { children++; pthread_mutex_unlock(&mutex); }
static void *noise(void *x) { for (uint64_t n = 0; !stop; n++) { pthread_mutex_lock(&mutex); free(malloc(n % 5000)); pthread_mutex_unlock(&mutex); } return NULL; }
static void *nested(void *x) { return x; }
static void *forks(void *argument) {
  long sum = 0;
  for (int i = 0; i < 25; i++) {
    pid_t pid = fork(); int status;
    if (pid == 0) {
      pthread_t thread; void *result;
      pthread_create(&thread, NULL, nested, (void *)(long)i), pthread_join(thread, &result);   // the child may have threads again
      if (i % 5 == 0) execl("/bin/sh", "sh", "-c", "exit 9", NULL);
      _exit(children == 1 && (long)result == i ? 4 : 1);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    sum += WEXITSTATUS(status);
  }
  return (void *)sum;
}
int main() {
  pthread_t noises[3], forkers[3]; void *sum;
  pthread_atfork(prepare, parent, child);
  for (int i = 0; i < 3; i++) pthread_create(&noises[i], NULL, noise, NULL), pthread_create(&forkers[i], NULL, forks, NULL);
  for (int i = 0; i < 3; i++) pthread_join(forkers[i], &sum), printf("%ld\n", (long)sum);
  stop = 1; for (int i = 0; i < 3; i++) pthread_join(noises[i], NULL);
  printf("%ld %ld\n", prepared, parents);
}
C
same "$T/forks"
