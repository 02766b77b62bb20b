# spec 3, S7, S8: threads that are created and end, more than there is room for at a time: the room of those that have ended is used again.
. "$(dirname "$0")/lib.sh"
compile churn.c -pthread <<'C'
#include "posix.h"
static volatile long total;
__attribute__((noipa)) static void *work(void *p) { volatile long n = 0; while (n < 500000) n++; __atomic_fetch_add(&total, n, __ATOMIC_RELAXED); return NULL; }
int main() {
  for (int i = 0; i < 1200; i++) {
    pthread_t threads[4];
    for (int k = 0; k < 4; k++) CHECK(pthread_create(&threads[k], NULL, work, NULL) == 0);
    for (int k = 0; k < 4; k++) pthread_join(threads[k], NULL);
  }
  printf("%ld\n", total);
}
C
RATE=10000 sampled "$T/churn"
seen work
[[ $(ask 'SELECT lost FROM sampling') == 0 ]] || fail "$(ask 'SELECT lost FROM sampling') samples found no room"
