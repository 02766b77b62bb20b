# Icount counts per thread: threads of known loops, at once, and the sum is the total.
. "$(dirname "$0")/lib.sh"
compile threads.c -pthread <<'C'
#include "posix.h"
static void *work(void *millions) { long n = (long)millions * 1000000 / 2; asm volatile("1: dec %0; jnz 1b" : "+r"(n)); return NULL; }
int main() {
  pthread_t threads[4];
  for (long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, (void *)(10 * (i + 1)));
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}
C
count "$T/threads"
[[ $(json 'sum(t["instructions"] for t in j["threads"]) == j["instructions"] == sum(i["instructions"] for i in j["images"].values())') == True ]] || fail "sums differ: $(json j)"
[[ $(json 'sorted(t["instructions"] // 1000000 for t in j["threads"])') == '[0, 10, 20, 30, 40]' ]] || fail "$(json 'j["threads"]')"
[[ $(json 'len({t["tid"] for t in j["threads"]})') == 5 ]] || fail "thread ids: $(json 'j["threads"]')"
