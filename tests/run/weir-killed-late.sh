# Weir is killed when the result is written, and only its words are left to be said: the result stays whole. Killed before it has
# attached to a process, it does not say that this was ended.
. "$(dirname "$0")/lib.sh"
python3 - "$WEIR" "$T/run.weir" <<'P' || fail 'a whole profile was overwritten'
import fcntl, os, sqlite3, subprocess, sys, time
reads, writes = os.pipe()
os.write(writes, b"x" * (fcntl.fcntl(writes, 1031, 4096) - 8))  # F_SETPIPE_SZ: the summary has no room
weir = subprocess.Popen([sys.argv[1], "profile", "-o", sys.argv[2], "--", "true"], stderr=writes)
while not os.path.exists(sys.argv[2]): time.sleep(0.05)
time.sleep(0.5)
os.close(writes), weir.kill(), weir.wait()
said = b""
while piece := os.read(reads, 65536): said += piece  # until the guardian has gone, too
assert b"killed" not in said, said
assert sqlite3.connect(sys.argv[2]).execute("SELECT complete FROM run").fetchone() == (1,)
P
compile waits.c <<'C'
#include "posix.h"
int main() {
  puts("ready"), fflush(stdout);
  if (vfork() == 0) sleep(3), _exit(0);  // until then it cannot be stopped
  return 7;
}
C
start "$T/waits"
"$WEIR" run --tool=icount --pid $P 2>"$T/err" 9>&- & weir=$!
sleep 1; kill -KILL $weir; wait $weir || true
finish
[[ $(<"$T/started.status") == 7 ]] || fail "status $(<"$T/started.status")"
! grep ended "$T/err" || fail 'it says that the program was ended'
