# spec 1, T4 and T5: OS calls, name by name, are those that strace counts, by the functions that make them; a read from a terminal
# waits.
. "$(dirname "$0")/lib.sh"
need strace sqlite3 python3
compile oscalls.c -static -O1 -fno-inline -pthread <<'C'
#include "posix.h"
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
void reads(int fd) { char b[100]; for (int i = 0; i < 20; i++) pread(fd, b, 100, 0); asm volatile(""); }
void fails() { struct stat s; for (int i = 0; i < 7; i++) stat("/nonexistent", &s); asm volatile(""); }
void identifies() { for (int i = 0; i < 13; i++) syscall(SYS_getpid); asm volatile(""); }
void sleeps() { struct timespec t = {0, 500000000}; nanosleep(&t, 0); asm volatile(""); }
static void *thread(void *x) { identifies(); fails(); return x; }
int main() {
  int fd = open("/proc/self/exe", O_RDONLY); reads(fd); fails(); identifies(); sleeps(); close(fd);
  void *p = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); mprotect(p, 4096, PROT_READ); munmap(p, 1 << 20);
  for (int i = 0; i < 3; i++) { pthread_t t; pthread_create(&t, 0, thread, 0); pthread_join(t, 0); }
  if (fork() == 0) { identifies(); write(1, "child\n", 6); _exit(0); }
  wait(0); write(1, "done\n", 5);
}
C
export GLIBC_TUNABLES=$NO_RSEQ  # which Weir refuses
run native strace -f -qq -o "$T/strace" "$T/oscalls"
profile "$T/oscalls"
ask 'SELECT o.name, sum(c.calls), sum(c.errors) FROM os_count c JOIN os_call o USING (number) GROUP BY 1' >"$T/weir-calls"
python3 - "$T" <<'P' || fail "OS calls differ from strace's"
import collections, re, sys
t = sys.argv[1]
calls, errors = collections.Counter(), collections.Counter()
for line in open(f"{t}/strace"):
    m = re.match(r"\d+ +(?:<\.\.\. )?(\w+)(\(| resumed>).*?( = (-1 E\w+)?|<unfinished \.\.\.>$|$)", line)
    if not m or line.rstrip().endswith("<unfinished ...>"): continue
    calls[m[1]] += 1
    errors[m[1]] += " = -1 E" in line
# The first execve is not the program's; those that never come back are not counted. Whether a thread has to wait for a
# futex is chance; page faults are no calls.
for name in ("execve", "exit", "exit_group"): calls.pop(name, None)
chance = {"futex", "page fault"}
weir = {name: (int(n), int(e)) for name, n, e in (line.split("|") for line in open(f"{t}/weir-calls"))}
bad = [(n, (calls[n], errors[n]), weir.get(n, (0, 0))) for n in sorted(calls.keys() | weir.keys()) if n not in chance and (calls[n], errors[n]) != weir.get(n, (0, 0))]
for b in bad: print("%s: strace %s, weir %s" % b)
sys.exit(bool(bad) or len(calls) < 10)
P
of() { ask "SELECT n.text, o.name, sum(c.calls), sum(c.errors), c.class FROM os_count c JOIN os_call o USING (number) JOIN function f ON f.id = c.function JOIN string n ON n.id = f.name
            WHERE o.name IN ($1) GROUP BY 1, 2 ORDER BY 1, 2"; }
[[ $(ask "SELECT sum(c.calls) FROM os_count c JOIN os_call o USING (number) WHERE o.name = 'getpid'") == 65 ]] || fail "getpid: $(of "'getpid'")"
answers "SELECT name, os_time_total > 0, waited_total > (SELECT cycles_per_second FROM run) / 4 FROM function_total WHERE name IN ('reads', 'sleeps', 'identifies') ORDER BY 1" <<<$'identifies|1|0\nreads|1|0\nsleeps|1|1'
answers "SELECT count(*) FROM thread t WHERE os_time != (SELECT sum(os_time) FROM function_count WHERE thread = t.id)" <<<0
answers "SELECT count(*) FROM function_count c JOIN thread t ON t.id = c.thread WHERE c.os_time_total > t.os_time OR c.waited_total > t.waited" <<<0
[[ $(report functions --os-calls=separate --format json | python3 -c "import json, sys; j = json.load(sys.stdin); print(sum(f['self'] for f in j['functions']) == j['run']['total'], [f['calls'] for f in j['functions'] if f['name'] == '[getpid]'])") == 'True [65]' ]] ||
  fail "--os-calls=separate"
# A person at a terminal, who thinks for half a second before every line.
compile asks.c -static -O1 <<'C'
#include "posix.h"
int main() { char line[100]; long n, sum = 0; while ((n = read(0, line, sizeof line)) > 0) sum += n; printf("%ld\n", sum); }
C
python3 - "$WEIR" "$T" <<'P' || fail "the terminal"
import os, pty, sys, time
weir, t = sys.argv[1:]
pid, fd = pty.fork()
if pid == 0: os.execv(weir, [weir, "profile", "-q", "-o", f"{t}/run.weir", "--", f"{t}/asks"])
time.sleep(0.5)
for line in (b"one\n", b"two\n", b"\x04"):
    time.sleep(0.5)
    os.write(fd, line)
out = b""
try:
    while True:
        data = os.read(fd, 1000)
        if not data: break
        out += data
except OSError: pass
sys.exit(os.waitpid(pid, 0)[1] or b"8" not in out)
P
answers "SELECT c.calls, c.waited > cycles_per_second, c.time < cycles_per_second / 10 FROM run, os_count c JOIN os_call o USING (number) WHERE o.name = 'read'" <<<'3|1|1'
