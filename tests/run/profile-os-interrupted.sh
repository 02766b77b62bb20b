# spec 1, T4: an OS call that a handler interrupts, and that handler's own OS calls, each count once, with the time that they took.
. "$(dirname "$0")/lib.sh"
need sqlite3
compile interrupted.c -O1 -fno-inline <<'C'
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>
static void handler(int s) { getppid(); }
static sigset_t none, alarms;
void wait_for_it(void) { sigsuspend(&none); }  // (the only place where signals come)
int main() {
  struct sigaction a = {.sa_handler = handler};
  sigaction(SIGALRM, &a, 0);
  sigemptyset(&none), sigemptyset(&alarms), sigaddset(&alarms, SIGALRM);
  sigprocmask(SIG_BLOCK, &alarms, 0);
  for (int i = 0; i < 10; i++) {
    struct itimerval once = {{0, 0}, {0, 50000}};
    setitimer(ITIMER_REAL, &once, 0);
    wait_for_it();
  }
}
C
profile "$T/interrupted"
answers "SELECT o.name, sum(c.calls), sum(c.errors), sum(c.waited) > (SELECT cycles_per_second FROM run) / 10 FROM os_count c JOIN os_call o USING (number)
         WHERE o.name IN ('rt_sigsuspend', 'getppid', 'rt_sigreturn') GROUP BY 1 ORDER BY 1" <<'E2'
getppid|10|0|0
rt_sigreturn|10|0|0
rt_sigsuspend|10|10|1
E2
# All of it is in the totals of those who called.
answers "SELECT count(*) FROM function_count f JOIN (SELECT callee, sum(os_time_total) AS os, sum(waited_total) AS waited FROM call_count GROUP BY callee) c ON c.callee = f.function
         WHERE f.os_time_total != c.os OR f.waited_total != c.waited" <<<0
