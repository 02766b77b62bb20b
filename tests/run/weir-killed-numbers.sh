# When Weir is killed, nobody is ended who has the number of a process that Weir served, and that has ended.
. "$(dirname "$0")/lib.sh"
[[ -w /proc/sys/kernel/ns_last_pid ]] || skip 'numbers of processes cannot be chosen here'
compile forks.c <<'C'
#include "posix.h"
int main() {
  signal(SIGCHLD, SIG_IGN);  // children are gone when they have ended
  pid_t pid = fork();
  if (!pid) for (;;) pause();
  usleep(300000), printf("%d\n", pid), fflush(stdout);
  for (;;) pause();
}
C
"$WEIR" run -- "$T/forks" >"$T/pid" 2>/dev/null & weir=$!
wait_for test -s "$T/pid"
pid=$(<"$T/pid")
kill -STOP $weir; kill -KILL "$pid"  # Weir does not come to see it
wait_for test ! -e "/proc/$pid"
stranger=0
for ((i = 0; i < 200 && stranger != pid; i++)); do
  ((stranger == 0)) || kill -KILL $stranger
  echo $((pid - 1)) >/proc/sys/kernel/ns_last_pid; sleep 60 & stranger=$!
done
((stranger == pid)) || { kill -KILL $stranger $weir; skip 'others were faster'; }
kill -KILL $weir; wait $weir || true
sleep 1
[[ -e /proc/$stranger && $(awk '{ print $3 }' /proc/$stranger/stat) == S ]] || fail 'a stranger was ended'
kill -KILL $stranger
