# Work and waiting are two columns. What passes in OS calls while a thread is off the processor (sleeps, pipes, locks, children, a person) is
# waited: it stands with its function, its callers, its call path, its OS call and its thread, and in nothing else unless --with-waits.
. "$(dirname "$0")/lib.sh"
need sqlite3 jq
compile waits.c -static -O1 -fno-inline -pthread <<'C'
#include "posix.h"
#include <sys/wait.h>
static volatile long sink;
void busy() { for (long i = 0; i < 100000000; i++) sink += i; }
void doze() { struct timespec t = {0, 300000000}; nanosleep(&t, 0); asm volatile(""); }
static void *idle(void *x) { doze(); return x; }
static int ends[2];
void take() { char c; read(ends[0], &c, 1); asm volatile(""); }
void give() { if (fork() == 0) { doze(); write(ends[1], "x", 1); _exit(0); } }
void collect() { wait(0); asm volatile(""); }
void vforks() { if (vfork() == 0) { doze(); _exit(0); } wait(0); asm volatile(""); }
int main() {
  pthread_t t[4]; for (int i = 0; i < 4; i++) pthread_create(t + i, 0, idle, 0);
  busy(); for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
  pipe(ends); give(); take(); collect(); give(); collect(); vforks(); puts("done");
}
C
OPTIONS=--paths=full profile "$T/waits"
second=$(ask 'SELECT cycles_per_second FROM run') third="(SELECT cycles_per_second * 0.299 FROM run)"
# What was asked for was waited, by thread, by function with its descendants', and by OS call; little of it was work.
answers "SELECT count(*) FROM thread WHERE waited > $third AND cycles + os_time < $second / 10" <<<7
answers "SELECT name, waited = 0, waited_total > $third FROM function_total WHERE name IN ('take', 'vforks') ORDER BY name" <<<$'take|1|1\nvforks|1|1'
answers "SELECT waited > 4 * $third, os_time < $second / 10 FROM (SELECT sum(c.waited) AS waited, sum(c.time) AS os_time FROM os_count c
         JOIN os_call o USING (number) WHERE o.name IN ('nanosleep', 'clock_nanosleep'))" <<<'1|1'
answers "SELECT o.name, sum(c.waited) > $third FROM os_count c JOIN os_call o USING (number) WHERE o.name IN ('read', 'wait4', 'vfork') GROUP BY 1 ORDER BY 1" <<<$'read|1\nvfork|1\nwait4|1'
answers "SELECT sum(waited) = (SELECT sum(waited) FROM thread), max(waited_total) = (SELECT max(waited) FROM thread) FROM context" <<<'1|1'
# The only one that works is nearly all of the work: in the list, its total, the tree, an export.
busy=$(report functions --format json | jq '(.functions[] | select(.name == "busy") | .self) / .run.total')
report functions --format json | jq -e '.functions[0].name == "busy" and .functions[0].self > 0.9 * .run.total and .run.total == .run.cycles + .run.os_time' >/dev/null || fail "busy is $busy of the work"
report tree --format json | jq -e '[.nodes[] | select(.name == "busy")][0].total > 0.9 * .run.total' >/dev/null || fail "the tree"
"$WEIR" export "$T/run.weir" --format folded -o - | awk '{ sum += $NF; if (/busy/) busy += $NF } END { exit !(busy > 0.9 * sum) }' || fail "the export"
report | grep -q 'next:.*detail busy' || fail "what is next: $(report)"
# The view of waits, and the column, which can be sorted by.
report waits --format json | jq -e '.waits[0].call == "clock_nanosleep" and .waits[0].seconds > 1.4 and ([.waits[].waited] | add) == .run.waited
  and any(.callers[]; .caller == "take" and .seconds > 0.29)' >/dev/null || fail "$(report waits --format json)"
report waits | grep -Eq 'read .*← take ← main' || fail "$(report waits)"
report functions --sort waited | sed -n 3p | grep -q nanosleep || fail "$(report functions --sort waited)"
report functions --sort waited_total --format json | jq -e '[.functions[].waited_total] == ([.functions[].waited_total] | sort | reverse)' >/dev/null || fail "--sort waited_total: $(report functions --sort waited_total)"
report oscalls --sort waited --format json | jq -e '.oscalls[0].name == "clock_nanosleep"' >/dev/null || fail "oscalls"
report detail take | grep -q '^waited .*with descendants' || fail "$(report detail take)"
# With it all is as if it were work.
report functions --with-waits --format json | jq -e '.functions[0].name != "busy" and .run.total == .run.cycles + .run.os_time and .run.os_time > .run.waited
  and ([.functions[].self] | add) == .run.total' >/dev/null || fail "--with-waits: $(report functions --with-waits)"
"$WEIR" export "$T/run.weir" --with-waits --format folded -o - | awk '{ sum += $NF } END { printf "%.0f\n", sum }' >"$T/sum"
[[ $(<"$T/sum") == "$(ask 'SELECT sum(cycles + os_time + waited) FROM thread')" ]] || fail "export --with-waits: $(<"$T/sum")"
"$WEIR" diff --with-waits "$T/run.weir" "$T/run.weir" >/dev/null || fail "diff --with-waits"
