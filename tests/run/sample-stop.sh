# contracts: a program that is stopped and goes on, while it is sampled, and one that is attached to while it is stopped.
. "$(dirname "$0")/lib.sh"
compile stops.c <<'C'
#include "posix.h"
static volatile long n;
__attribute__((noipa)) static void spin(void) { for (long i = 0; i < 50000000; i++) n++; }
int main() {
  int status; pid_t pid = fork();
  if (!pid) { spin(), raise(SIGSTOP), spin(); return 4; }
  CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
  spin(), kill(pid, SIGCONT);
  CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 4);
  puts("right");
}
C
RATE=5000 sampled "$T/stops"
build "$PROGRAMS/busy.c" "$T/busy" -pthread
start "$T/busy" c
kill -STOP $P
timeout -k 5 $LIMIT "$WEIR" sample -q --pid $P --seconds 0.2 -o "$T/run.weir" || fail "stopped: status $?"
grep -q 'State:.T' /proc/$P/status || fail "it is not stopped any more: $(grep State /proc/$P/status)"
kill -CONT $P
finish
[[ $(<"$T/started.status") == 0 && $(tail -n 1 "$T/started.out") == 'wrong 0' ]] || fail "$(<"$T/started.status") $(<"$T/started.out")"
