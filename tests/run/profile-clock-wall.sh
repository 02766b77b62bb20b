# spec 1, T6: by wall time a function takes as long as it says itself; OS calls are apart; all sums are right.
. "$(dirname "$0")/lib.sh"
need sqlite3
compile wall.c -g -O1 <<'C'
#include "posix.h"
#include <x86intrin.h>
#define APART __attribute__((noinline, noclone))
enum { long_time = 200000000 };
static volatile int sink;
APART static void step(void) { sink++; }
APART static void busy(unsigned long ticks) { for (unsigned long begin = __rdtsc(); __rdtsc() - begin < ticks;) { for (int i = 0; i < 1000; i++) sink++; step(); } }
APART static void idle(unsigned long ticks) { for (unsigned long begin = __rdtsc(); __rdtsc() - begin < ticks;) usleep(1000); }
static void *run(void *ticks) { busy((unsigned long)ticks); return NULL; }
int main() {
  pthread_t thread; pthread_create(&thread, NULL, run, (void *)long_time), pthread_join(thread, NULL);
  idle(long_time), busy(2ul * long_time);
  if (fork() == 0) { busy(long_time); _exit(0); }
  wait(NULL);
}
C
OPTIONS=--clock=wall profile "$T/wall"
of() { echo "FROM function_count c JOIN function f ON f.id = c.function JOIN string n ON n.id = f.name WHERE n.text = '$1'"; }
# (Weir's own work is not counted, and is in what the program measures.)
answers "SELECT count(*), min(c.total) > 100000000, max(c.total) > 200000000 $(of busy)" <<<'3|1|1'
answers "SELECT c.self < 100000000, c.waited_total > 50000000 $(of idle)" <<<'1|1'
answers "SELECT count(*) FROM thread t WHERE t.cycles <> (SELECT sum(self) FROM function_count c WHERE c.thread = t.id)" <<<0
answers "SELECT count(*) FROM thread t WHERE t.cycles <> (SELECT sum(self) FROM context c WHERE c.thread = t.id)" <<<0
answers "SELECT count(*) FROM (SELECT * FROM folded_function_count UNION ALL SELECT * FROM function_count WHERE NOT EXISTS (SELECT 1 FROM scope)) c WHERE c.self <> (SELECT sum(k.extra) FROM block_count k JOIN block b ON b.id = k.block WHERE b.function = c.function AND k.thread = c.thread)" <<<0
answers "SELECT count(*) FROM thread t, run r WHERE t.cycles + t.os_time + t.waited > (r.ended - r.started + 1000) * (r.cycles_per_second / 1e6) * 1.01" <<<0
answers "SELECT clock, full_paths FROM run" <<<'wall|1'
# That asks for what is waited: it is in the times, unless it is not wanted.
report summary | grep -q 'code + OS calls + waiting' || fail "$(report summary)"
report summary --without-waits | grep -q '= code + OS calls$' || fail "$(report summary --without-waits)"
report source busy | grep -q 'sink++' || fail 'no lines'
expect_fail 125 'wall time' "$WEIR" report --cpu znver4 "$T/run.weir" functions
