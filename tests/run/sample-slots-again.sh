# spec 3, S7: more threads than there are slots, one after the other: what one has left is not the next one's.
. "$(dirname "$0")/lib.sh"
compile churn.c -pthread <<'C'
#include "posix.h"
#include <pthread.h>
static volatile unsigned long sink;
__attribute__((noipa)) static void leaf(void) { for (long i = 0; i < 1000000; i++) sink += i; }
__attribute__((noipa)) static void *early(void *p) { leaf(); asm volatile(""); return p; }
__attribute__((noipa)) static void *late(void *p) { leaf(); asm volatile(""); return p; }
int main() {
  for (int i = 0; i < 6000; i += 8) {
    pthread_t t[8];
    for (int j = 0; j < 8; j++) pthread_create(t + j, NULL, i < 3000 ? early : late, NULL);
    for (int j = 0; j < 8; j++) pthread_join(t[j], NULL);
  }
  puts("done");
}
C
RATE=5000 sampled "$T/churn"
seen early late
# Half of the work each, as far as a busy machine leaves threads of a fraction of a millisecond their samples; and no more samples than a minute has: it takes some seconds.
share() { ask "SELECT sum(total) * 100 / (SELECT sum(total) FROM function_total WHERE name IN ('early', 'late')) FROM function_total WHERE name = '$1'"; }
(($(share early) >= 25 && $(share early) <= 75)) || fail "early has $(share early) %: $(report)"
[[ $(ask 'SELECT samples < 5000 * 60 FROM sampling') == 1 ]] || fail "too many samples: $(report)"
