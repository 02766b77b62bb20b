# spec 1, B1: a program that is killed, aborts, or leaves by _exit: the counts up to that moment are in the file, and its status is its own.
. "$(dirname "$0")/lib.sh"
need sqlite3
compile killed.c -O1 -fno-inline -fno-optimize-sibling-calls -pthread <<'C'
#include "posix.h"
static volatile int turns;
void turn() { turns++; }
void end(char how) {
  turn();
  switch (how) {
    case 'k': raise(SIGKILL);
    case 'a': abort();
    case '_': _exit(7);
    case 's': *(volatile int *)0 = 1;
    case 'q': syscall(SYS_exit_group, 9);
    case 'w': puts("ready"); fflush(stdout); for (;;) turn(), usleep(100);
  }
}
void run(int n, char how) { for (int i = 0; i < n; i++) turn(); end(how); turn(); }
int main(int argc, char **argv) { run(1000, argv[1][0]); }
C
ended() {  # ended HOW STATUS
  STATUS=$2 profile "$T/killed" "$1"
  answers "SELECT name, calls FROM function_total WHERE name IN ('main', 'run', 'turn', 'end') ORDER BY 1" <<<$'end|1\nmain|1\nrun|1\nturn|1001'
  answers "SELECT count(*) FROM thread t WHERE cycles != (SELECT sum(self) FROM function_count WHERE thread = t.id)" <<<0
  answers "SELECT (SELECT total FROM function_total WHERE name = 'main') > (SELECT total FROM function_total WHERE name = 'run'),
           (SELECT total FROM function_total WHERE name = 'run') > (SELECT self FROM function_total WHERE name = 'turn')" <<<'1|1'
  answers "SELECT exit_status FROM process" <<<"$2"
}
ended k 137
ended a 134
ended _ 7
ended s 139
ended q 9
# Killed from outside, in mid-run.
mkfifo "$T/out"
"$WEIR" profile -q -o "$T/run.weir" -- "$T/killed" w >"$T/out" 2>"$T/err" &
weir=$!
read -r line <"$T/out"
[[ $line == ready ]] || fail "said $line"
pid=$(pgrep -P "$weir" -x killed || pgrep -f "^$T/killed w\$" | head -n 1)
works "$pid" 3
kill -KILL "$pid"
status=0; wait "$weir" || status=$?
[[ $status == 137 ]] || fail "status $status"
answers "SELECT name, CASE name WHEN 'turn' THEN calls > 1001 ELSE calls END FROM function_total WHERE name IN ('main', 'run', 'turn', 'end') ORDER BY 1" <<<$'end|1\nmain|1\nrun|1\nturn|1'
