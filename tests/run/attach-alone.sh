# The same, one thing at a time: a process that waits, one that is stopped, and one whose first thread has ended.
. "$(dirname "$0")/lib.sh"
build "$PROGRAMS/busy.c" "$T/busy" -pthread
for what in c p s r v t h k x; do
  start "$T/busy" $what
  state >"$T/before"
  for round in {1..3}; do
    "$WEIR" run -q --tool=icount --pid $P --seconds 0.1 2>"$T/err" || fail "$what: status $?: $(<"$T/err")"
  done
  state >"$T/after"
  diff "$T/before" "$T/after" || fail "$what: something is left"
  finish
  [[ $(<"$T/started.status") == 0 && $(tail -n 1 "$T/started.out") == 'wrong 0' ]] || fail "$what: $(<"$T/started.status") $(<"$T/started.out")"
done
start "$T/busy" c
kill -STOP $P
"$WEIR" run -q --pid $P --seconds 0.2 || fail "stopped: $?"
grep -q 'State:.T' /proc/$P/status || fail "it is not stopped any more: $(grep State /proc/$P/status)"
kill -CONT $P
finish
[[ $(<"$T/started.status") == 0 ]] || fail "stopped: $(<"$T/started.status")"
compile leader.c -pthread <<'C'
#include "posix.h"
static void *work(void *p) { char c; puts("ready"), fflush(stdout); while (read(0, &c, 1)) {} puts("done"); exit(3); }
int main() { pthread_t t; pthread_create(&t, NULL, work, NULL); pthread_exit(NULL); }
C
start "$T/leader"
"$WEIR" run -q --pid $P --seconds 0.2 || fail "without its first thread: $?"
finish
[[ $(<"$T/started.status") == 3 && $(tail -n 1 "$T/started.out") == 'done' ]] || fail "without its first thread: $(<"$T/started.status")"
