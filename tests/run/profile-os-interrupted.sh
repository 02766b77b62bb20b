# spec 1, T4: an OS call that a handler interrupts, and that handler's own OS calls, each count once, with the time that they took.
. "$(dirname "$0")/lib.sh"
need sqlite3
compile interrupted.c -O1 -fno-inline <<'C'
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>
static void handler(int s) { getppid(); }
void wait_for_it(void) { pause(); }
int main() {
  struct sigaction a = {.sa_handler = handler};
  sigaction(SIGALRM, &a, 0);
  struct itimerval every = {{0, 20000}, {0, 20000}};
  setitimer(ITIMER_REAL, &every, 0);
  for (int i = 0; i < 10; i++) wait_for_it();
}
C
profile "$T/interrupted"
answers "SELECT o.name, sum(c.calls), sum(c.errors), sum(c.time) > (SELECT cycles_per_second FROM run) / 20 FROM os_count c JOIN os_call o USING (number)
         WHERE o.name IN ('pause', 'getppid', 'rt_sigreturn') GROUP BY 1 ORDER BY 1" <<'E2'
getppid|10|0|0
pause|10|10|1
rt_sigreturn|10|0|0
E2
# All of it is in the totals of those who called.
answers "SELECT count(*) FROM function_count f JOIN (SELECT callee, sum(os_time_total) AS os FROM call_count GROUP BY callee) c ON c.callee = f.function
         WHERE f.os_time_total != c.os" <<<0
