# A program's own profiling signal and interval timers go on beside ours, and all of them come.
. "$(dirname "$0")/lib.sh"
compile timers.c <<'C'
#include "posix.h"
static volatile int ticks[65];
static void on(int number, siginfo_t *info, void *context) { ticks[number]++; }
int main(int argc, char **argv) {
  struct itimerval often = {{0, 2000}, {0, 2000}}, now;
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN}; struct itimerspec soon = {{0, 2000000}, {0, 2000000}};
  timer_t timer;
  int signals[] = {SIGPROF, SIGVTALRM, SIGALRM, SIGRTMIN, SIGURG};
  for (int i = 0; i < (argc > 1 ? 4 : 5); i++) on_signal(signals[i], on, SA_RESTART);
  setitimer(ITIMER_PROF, &often, NULL), setitimer(ITIMER_VIRTUAL, &often, NULL), setitimer(ITIMER_REAL, &often, NULL);
  CHECK(timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) == 0 && timer_settime(timer, 0, &soon, NULL) == 0);
  for (int i = 0; i < 4; i++) while (ticks[signals[i]] < 20) {}
  CHECK(getitimer(ITIMER_PROF, &now) == 0 && now.it_interval.tv_usec == 2000);
  for (int i = 0; i < 100; i++) raise(SIGURG);
  CHECK(argc > 1 || ticks[SIGURG] == 100);
  puts("right");
}
C
RATE=5000 sampled "$T/timers"
OPTIONS=--source=timer sampled "$T/timers" without-SIGURG
