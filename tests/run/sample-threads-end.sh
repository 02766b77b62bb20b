# Threads that end while Weir looks at them (they block the signal) leave nothing behind: their process ends, too.
. "$(dirname "$0")/lib.sh"
compile ends.c -pthread <<'C'
#include "posix.h"
static void *spin(void *p) {
  sigset_t all;
  sigfillset(&all), pthread_sigmask(SIG_SETMASK, &all, NULL);
  for (volatile long i = 0; i < 600000 + (long)p * 10000; i++) {}
  return NULL;
}
int main() {
  for (int round = 0; round < 20; round++) {
    pthread_t threads[60];
    for (long i = 0; i < 60; i++) CHECK(pthread_create(&threads[i], NULL, spin, (void *)i) == 0);
    for (int i = 0; i < 60; i++) pthread_join(threads[i], NULL);
  }
  puts("ended");
}
C
RATE=10000 sampled "$T/ends"
