# How each process ended is in the profile: Weir's own child and those of others, by exit, by a signal, by another program.
. "$(dirname "$0")/lib.sh"
need sqlite3
compile tree.c -O1 <<'C'
#include "posix.h"
#include <sys/wait.h>
int main(int argc, char **argv) {
  if (argc > 1) return 6;
  for (int i = 0; i < 4; i++) {
    if (fork() == 0) {
      if (i == 0) _exit(5);
      if (i == 1) raise(SIGUSR1);
      if (i == 2) execl("/proc/self/exe", "tree", "again", NULL);
      if (i == 3) exit(130);  // as a shell would, of what SIGINT has ended
    }
    wait(0);
  }
  return 7;
}
C
STATUS=7 profile "$T/tree"
answers "SELECT exit_status, ended_by, count(*) FROM process GROUP BY 1, 2 ORDER BY 1" <<<$'|exec|1\n5|exit|1\n6|exit|1\n7|exit|1\n130|exit|1\n138|signal|1'
for ended in 'exit 5' SIGUSR1 exec 'exit 6' 'exit 130' 'exit 7'; do
  [[ $(report threads | grep -c "  $ended  ") == 1 ]] || fail "$ended: $(report threads)"
done
report summary | grep -q '^  ended         exit 7; 1 of its processes by a signal: see threads$' || fail "$(report summary)"
# Ctrl-C.
compile endless.c <<'C'
#include "posix.h"
int main(int argc, char **argv) { for (volatile long n = 0;; n++) if (n == 1000 && argc > 1) creat(argv[1], 0600); }
C
interrupted INT "$WEIR" profile -o "$T/run.weir" -- "$T/endless" "$T/ready"
[[ $(<"$T/weir.status") == 130 ]] && grep -q '^weir:   ended         SIGINT$' "$T/weir.err" || fail "$(<"$T/weir.err")"
# What Weir lets go of goes on.
"$T/endless" & P=$!
"$WEIR" profile -q -o "$T/run.weir" --pid $P --seconds 0.3
kill $P
report threads | grep -q '  let go  ' || fail "$(report threads)"
