# spec 3, S1: a user who may not look into the kernel samples his programs all the same, without its time, or by timers; that is in the profile.
. "$(dirname "$0")/lib.sh"
((UID == 0)) || skip 'only root can become another user'
chmod 755 "$T"; mkdir -m 777 "$T/anybody"
user='setpriv --reuid=65534 --regid=65534 --clear-groups'
$user test -x "$WEIR" || skip "$WEIR is not reachable for other users"
compile work.c <<'C'
#include "posix.h"
static volatile long n;
__attribute__((noipa)) static void spin(void) { for (long i = 0; i < 100000000; i++) n++; }
int main() { spin(); if (!fork()) execl("/bin/echo", "echo", "child", NULL); int status; wait(&status); spin(); return 5; }
C
run weir $user "$WEIR" sample -q -F 5000 -o "$T/anybody/run.weir" -- "$T/work"
[[ $(<"$T/weir.status") == 5 && $(<"$T/weir.out") == child ]] || fail "$(<"$T/weir.status") $(<"$T/weir.out") $(<"$T/weir.err")"
cp "$T/anybody/run.weir" "$T/run.weir"
seen spin main
paranoid=$(cat /proc/sys/kernel/perf_event_paranoid)
((paranoid < 2)) || [[ $(ask "SELECT source = 'timer' OR NOT sees_kernel FROM sampling") == 1 ]] || fail "paranoid $paranoid: $(ask 'SELECT source, sees_kernel FROM sampling')"
