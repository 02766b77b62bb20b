# spec 1, T4: who waits for a child is not charged for it, as the child has that time; the wait is counted, and told.
. "$(dirname "$0")/lib.sh"
need sqlite3 python3
compile waits.c -static -O1 -fno-inline <<'C'
#include "posix.h"
#include <spawn.h>
#include <sys/wait.h>
extern char **environ;
void child() { struct timespec t = {1, 0}; nanosleep(&t, 0); asm volatile(""); }
void waits() { int status; if (fork() == 0) { child(); _exit(0); } wait(&status); asm volatile(""); }
void looks() { siginfo_t info; if (fork() == 0) { child(); _exit(0); } waitid(P_ALL, 0, &info, WEXITED); asm volatile(""); }
void vforks() { volatile int i = 0; if (vfork() == 0) { sleep(1); _exit(0); } wait(0); asm volatile(""); }
int main() { waits(); looks(); vforks(); puts("done"); }
C
profile "$T/waits"
rate=$(ask 'SELECT cycles_per_second FROM run')
# Each child slept for a second, and nobody else has that time.
answers "SELECT o.name, sum(c.uncharged), sum(c.waited) > $rate, sum(c.time) < $rate / 2 FROM os_count c JOIN os_call o USING (number)
         WHERE o.name IN ('waitid', 'vfork') GROUP BY 1 ORDER BY 1" <<<$'vfork|1|1|1\nwaitid|1|1|1'
answers "SELECT sum(c.uncharged) >= 1, sum(c.waited) > $rate FROM os_count c JOIN os_call o USING (number) WHERE o.name = 'wait4'" <<<'1|1'
answers "SELECT n.text, c.os_time_total < $rate / 2 FROM function_count c JOIN thread t ON t.id = c.thread JOIN process p ON p.id = t.process JOIN function f ON f.id = c.function
         JOIN string n ON n.id = f.name WHERE p.parent IS NULL AND n.text IN ('waits', 'looks', 'vforks') ORDER BY 1" <<<$'looks|1\nvforks|1\nwaits|1'
answers "SELECT sum(os_time) BETWEEN 3 * $rate AND 5 * $rate FROM thread" <<<1
[[ $(report summary --format json | python3 -c "import json, sys; j = json.load(sys.stdin); print(j['waited'] > 3 * $rate, j['run']['total'] == j['run']['cycles'] + j['run']['os_time'])") == 'True True' ]] ||
  fail "$(report summary --format json)"
report summary | grep -Eq '^  waited .* for a child or a person: not in the total$' || fail "$(report summary)"
report oscalls | grep -Eq ' waitid ' || fail "$(report oscalls)"
