# Of more threads than are kept apart the rest is added up: no count is lost, and the memory is that of the threads that live.
. "$(dirname "$0")/lib.sh"
compile many.c -pthread <<'C'
#include <pthread.h>
#include <stdlib.h>
__attribute__((noinline)) void *work(void *p) { __asm__ volatile(""); return p; }
static void *thread(void *p) { for (int i = 0; i < 10; i++) work(p); return 0; }
int main(int argc, char **argv) {
  for (int i = 0; i < atoi(argv[1]); i++) { pthread_t t; if (pthread_create(&t, 0, thread, 0)) return 1; pthread_join(t, 0); }
}
C
for OPTIONS in --paths=callers --paths=full; do
  profile "$T/many" 1500
  answers "SELECT calls FROM function_total WHERE name = 'work'" <<<15000
  answers "SELECT count(*), sum(tid = 0), max(CASE tid WHEN 0 THEN name END) FROM thread" <<<'1002|1|500 threads'
  answers "SELECT sum(cycles) = (SELECT sum(self) FROM function_count), sum(cycles) = (SELECT sum(b.count * k.cycles + b.extra) FROM block_count b JOIN block k ON k.id = b.block) FROM thread" <<<'1|1'
  answers "SELECT pid > 0, exit_status FROM process ORDER BY id" <<<$'1|0\n0|'
done
answers "SELECT sum(c.calls), count(*) <= 1002 FROM context c JOIN function_total f ON f.id = c.function WHERE f.name = 'work'" <<<'15000|1'
OPTIONS= count "$T/many" 1500
[[ $(json 'sum(t["instructions"] for t in j["threads"]) == j["instructions"]') == True ]] || fail 'threads do not add up'
