# A system call that attaching or detaching interrupts ends as natively: begun again, or with EINTR for a handler.
. "$(dirname "$0")/lib.sh"
compile calls.c -pthread <<'C'
#include "posix.h"
#include <poll.h>
static volatile int handled;
static void on(int number, siginfo_t *info, void *context) { handled++; }
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
int main() {
  on_signal(SIGALRM, on, 0);
  puts("ready"), fflush(stdout);
  struct itimerval soon = {{0, 700000}, {0, 700000}}, never = {};  // (again and again: the first may come before the call)
  for (int i = 0; i < 3; i++) {
    int before = handled;
    setitimer(ITIMER_REAL, &soon, NULL);
    CHECK(pause() == -1 && errno == EINTR && handled > before);
    setitimer(ITIMER_REAL, &never, NULL);
    double begin = now();
    CHECK(poll(NULL, 0, 700) == 0 && now() - begin >= 0.699);
    struct timespec t = {0, 700000000};
    begin = now();
    CHECK(nanosleep(&t, NULL) == 0 && now() - begin >= 0.7);
    setitimer(ITIMER_REAL, &soon, NULL);
    t.tv_sec = 60;
    CHECK(nanosleep(&t, &t) == -1 && errno == EINTR && t.tv_sec >= 50);
    setitimer(ITIMER_REAL, &never, NULL);
  }
  char c;
  CHECK(read(0, &c, 1) == 0);
  puts("right");
}
C
start "$T/calls"
while sleep 0.05 && ! grep -q 'anon_pipe_read\|pipe_read' /proc/$P/wchan && [[ -d /proc/$P ]] && ((SECONDS < LIMIT)); do
  "$WEIR" run -q --tool=icount --pid $P --seconds 0.15 2>"$T/err" || fail "status $?: $(<"$T/err")"
done
finish
[[ $(<"$T/started.status") == 0 && $(tail -n 1 "$T/started.out") == right ]] || fail "$(<"$T/started.status") $(<"$T/started.out")"
