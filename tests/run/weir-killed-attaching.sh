# Weir is killed while it attaches: the process goes on natively, or is ended, and never crashes.
. "$(dirname "$0")/lib.sh"
compile threads.c -pthread <<'C'
#include "posix.h"
static void *work(void *which) { for (volatile long n = 0;; n++) if (which) usleep(100); }
int main() {
  pthread_t thread;
  for (long i = 0; i < 30; i++) CHECK(pthread_create(&thread, NULL, work, (void *)i) == 0);
  puts("ready"), fflush(stdout), pause();
}
C
python3 - "$WEIR" "$T/threads" <<'P' || fail 'it crashed'
import signal, subprocess, sys, time
for i in range(40):
    program = subprocess.Popen([sys.argv[2]], stdout=subprocess.PIPE)
    program.stdout.readline()
    weir = subprocess.Popen([sys.argv[1], "run", "--tool=icount", "--pid", str(program.pid)], stderr=subprocess.DEVNULL)
    given_up = time.monotonic() + 100
    while "TracerPid:\t0" in open(f"/proc/{program.pid}/status").read() and time.monotonic() < given_up: pass
    time.sleep(i * 0.0002)
    weir.kill(), weir.wait()
    time.sleep(0.1)
    ended = program.poll()
    program.kill(), program.wait()
    assert ended in (None, -signal.SIGKILL), f"{i}: {ended}"
P
