# Weir is killed at any instant, while it attaches, samples or leaves: what it samples goes on, or is ended where Weir held it; it never crashes.
. "$(dirname "$0")/lib.sh"
compile threads.c -pthread <<'C'
#include "posix.h"
static void *work(void *which) { for (volatile long n = 0;; n++) if (which) usleep(100); }
int main() {
  pthread_t thread;
  for (long i = 0; i < 10; i++) CHECK(pthread_create(&thread, NULL, work, (void *)i) == 0);
  puts("ready"), fflush(stdout), pause();
}
C
timeout -k 5 $LIMIT python3 - "$WEIR" "$T" <<'P' || fail 'not so'
import os, subprocess, sys, time
weir, directory = sys.argv[1:]
ways = [[], ["--clock=wall"], ["--source=timer"]]
def state(pid): return open(f"/proc/{pid}/status").read().split("State:\t")[1][0]
for i in range(24):
    program = subprocess.Popen([directory + "/threads"], stdout=subprocess.PIPE)
    program.stdout.readline()
    run = subprocess.Popen([weir, "sample", "-q", "-F", "5000", "-o", directory + "/x.weir", "--pid", str(program.pid), "--seconds", "0.1"] + ways[i % 3], stderr=subprocess.DEVNULL)
    time.sleep(0.004 * i + 0.01)
    run.kill(), run.wait()
    time.sleep(0.2)
    deadline = time.monotonic() + 100  # the guardian may hold it for a moment
    while (held := program.poll() is None and state(program.pid) in "tT") and time.monotonic() < deadline: time.sleep(0.05)
    ended = program.poll()
    program.kill(), program.wait()
    assert ended in (None, -9) and not held, f"{i}, {ways[i % 3]}: {'it stands still' if held else ended}"
def is_gone(pid): return not os.path.exists(f"/proc/{pid}") or state(pid) == "Z"
for i in range(16):  # started: it ends by itself, as it would have; or where it executes another program, as Weir holds it there
    out = f"{directory}/out{i}"
    run = subprocess.Popen([weir, "sample", "-q", "-F", "5000", "-o", directory + "/x.weir"] + ways[i % 3] +
                           ["--", "sh", "-c", f"echo $$ >{out}; i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; echo executes >>{out}; /bin/echo $i >>{out}"], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline and not (os.path.exists(out) and open(out).read()): time.sleep(0.001)
    time.sleep(0.01 * i)
    run.kill(), run.wait()
    pid = open(out).read().split()[0]
    while time.monotonic() < deadline and not is_gone(pid): time.sleep(0.02)
    words = open(out).read().split()
    assert is_gone(pid) and words[1:] in (["executes", "60000"], ["executes"]), f"started, {i}: {words}"
P
