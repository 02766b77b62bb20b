# Masks are as the program wants them afterwards, also of a process that could not be entered; timers of ended threads are gone; and
# threads do not stand still while another one waits for a vforked child.
. "$(dirname "$0")/lib.sh"
compile some.c -pthread <<'C'
#include "posix.h"
#include <sys/resource.h>
static volatile long n; static volatile int stop;
static void *spin(void *p) { for (long i = 0; i < 20000000; i++) n++; return NULL; }
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
static void *clock_thread(void *longest) {
  for (double last = now(); !stop; usleep(1000)) { double next = now(); if (next - last > *(double *)longest) *(double *)longest = next - last; last = next; }
  return NULL;
}
int main(int argc, char **argv) {
  sigset_t all, old; char end; pthread_t t; double longest = 0;
  sigfillset(&all), sigprocmask(SIG_BLOCK, &all, &old);
  if (argv[1][0] == 'l') { struct rlimit l = {4000000000, 4000000000}; setrlimit(RLIMIT_AS, &l); }
  puts("ready"), fflush(stdout);
  if (argv[1][0] == 'm') { while (access(argv[2], F_OK)) spin(NULL); sigprocmask(SIG_SETMASK, &old, NULL); puts("unblocked"), fflush(stdout); }
  if (argv[1][0] == 't') for (int i = 0; i < 30; i++) pthread_create(&t, NULL, spin, NULL), pthread_join(t, NULL);
  if (argv[1][0] == 'v') {
    pthread_create(&t, NULL, clock_thread, &longest), usleep(300000);
    if (!vfork()) { struct timespec six = {6, 0}; nanosleep(&six, NULL); _exit(0); }
    wait(NULL), stop = 1, pthread_join(t, NULL), printf("longest pause %.1f s\n", longest), fflush(stdout);
  }
  while (read(0, &end, 1) == 1) {}
}
C
blocked() { sed -n 's/^SigBlk:\t*//p' "/proc/$P/status"; }
attach() { timeout -k 5 $LIMIT "$WEIR" sample -q -o "$T/p.weir" --pid $P "$@"; }
start "$T/some" limited; before=$(blocked)
attach --seconds 0.2 2>"$T/err" && fail 'entered, with no room'
[[ $(blocked) == "$before" ]] || fail "after a failure $(blocked) is blocked, not $before"
finish; start "$T/some" mask "$T/go"
attach --seconds 0.3
[[ $(blocked) == "$before" ]] || fail "after leaving $(blocked) is blocked, not $before"
timeout -k 5 $LIMIT "$WEIR" sample -q -o "$T/p.weir" --pid $P & weir=$!
is_masked() { [[ $(blocked) != "$before" ]]; }
wait_for is_masked
touch "$T/go"
wait_for grep -q unblocked "$T/started.out"
kill -INT $weir; wait $weir || fail "status $?"
[[ $(blocked) == 0000000000000000 ]] || fail "the program has unblocked all, and $(blocked) is blocked"
finish; start "$T/some" timers
attach --source=timer --seconds 1
[[ ! -s /proc/$P/timers ]] || fail "$(grep -c ID "/proc/$P/timers") timers are left"
finish; start "$T/some" vfork
attach --seconds 1
finish
awk '/longest pause/ { exit $3 > 3 }' "$T/started.out" || fail "$(cat "$T/started.out")"
