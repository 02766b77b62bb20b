# Nothing of Weir's can be read by other users: profiles, the cache, shared memory. What is written with -o and --json for
# others to read follows the umask.
. "$(dirname "$0")/lib.sh"
umask 022
cd "$T"
for round in 1 2; do
  "$WEIR" run -q -- ls >/dev/null
  "$WEIR" profile -q -o run.weir -- ls >/dev/null
done
"$WEIR" run -q --tool=icount --json counts.json -- true
"$WEIR" export run.weir --format callgrind -o callgrind.out
mode() { stat -c %a "$1"; }
[[ -s run.weir && -s run.weir.old ]] || fail 'no profile'
for file in run.weir run.weir.old; do [[ $(mode $file) == 600 ]] || fail "$file: $(mode $file)"; done
for file in counts.json callgrind.out; do [[ $(mode $file) == 644 ]] || fail "$file: $(mode $file)"; done
[[ $(mode .cache/weir) == 700 ]] || fail "the cache: $(mode .cache/weir)"
(( $(find .cache/weir -type f | wc -l) > 3 )) || fail 'nothing is in the cache'
open=$(find .cache/weir -perm /077); [[ -z $open ]] || fail "others may read $open"
# An archive of a Weir that left it open is closed.
chmod 644 .cache/weir/*
"$WEIR" run -q -- ls >/dev/null
(( $(find .cache/weir -type f ! -perm /077 | wc -l) > 2 )) || fail 'archives are left open'
# Shared memory, and no socket and no file anywhere else.
"$WEIR" run -- sleep 600 & weir=$!
is_served() { pid=$(pgrep -P $weir -x sleep) && grep -q weir-cache "/proc/$pid/maps"; }
wait_for is_served
open=$(find -L /proc/$weir/fd -type f -perm /077 -exec readlink {} + | grep -E 'memfd:weir-|/\.cache/weir/' || true)
[[ -z $open ]] || fail "others may read $open"
[[ $(find /proc/$weir/fd -lname '/memfd:weir-*' | wc -l) -ge 4 ]] || fail 'no shared memory'
[[ $(find /proc/$weir/fd -lname 'socket:*' | wc -l) == 0 ]] || fail 'a socket'
kill $pid; wait $weir || true
# Where a process of root's becomes another user, a keeper of that user lends it memory: and shows nothing else.
((EUID == 0)) && need setpriv || exit 0
chmod 755 "$T"; mkdir -m 777 "$T/seen"
compile drops.c <<'C'
#include "posix.h"
int main(int argc, char **argv) {
  while (access(argv[1], F_OK)) {
    if (fork() == 0) { if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)) return 1; execl("/bin/true", "true", NULL); }
    wait(NULL);
  }
  puts("seen"), fflush(stdout), sleep(60);
}
C
cat >"$T/look.py" <<'P'
import os, sys, time
def words(*path): return open(os.path.join("/proc", *path), "rb").read()
end = time.time() + 300
while time.time() < end:
    for pid in os.listdir("/proc"):
        try:
            if not pid.isdigit() or words(pid, "comm") != b"weir-keeper\n": continue
            os.kill(int(pid), 19)  # it is ours
            if os.stat(f"/proc/{pid}/fd").st_uid != os.getuid(): raise OSError  # it was stopped too early
            open_files = [(os.readlink(f"/proc/{pid}/fd/{fd}"), words(pid, "fdinfo", fd)) for fd in os.listdir(f"/proc/{pid}/fd")]
            if any(name.startswith("pipe:") for name, info in open_files): raise OSError  # it has not told Weir yet that it is there
            wrong = [name for name, info in open_files if not name.startswith("/memfd:weir-")]
            wrong += [name for name, info in open_files if int(info.split()[3], 8) & 3 and "weir-threads" not in name]
            wrong += [line for line in words(pid, "maps").decode().split("\n") if "memfd" in line]
            with open(sys.argv[1] + ".part", "w") as out: print(len(open_files) > 0, words(pid, "environ"), wrong, file=out)
            os.kill(int(pid), 18)
            os.rename(sys.argv[1] + ".part", sys.argv[1])
            sys.exit()
        except (OSError, IndexError):
            try: os.kill(int(pid), 18)
            except OSError: pass
P
SECRET=x "$WEIR" run -- "$T/drops" "$T/seen/keeper" >"$T/drops.out" 2>/dev/null & weir=$!
setpriv --reuid=65534 --regid=65534 --clear-groups python3 -B "$T/look.py" "$T/seen/keeper"
wait_for test -s "$T/drops.out"
[[ $(<"$T/seen/keeper") == "True b'' []" ]] || fail "a keeper shows: $(<"$T/seen/keeper")"
open=$(find -L /proc/$weir/fd -type f -perm /077 -exec readlink {} + | grep memfd:weir- || true)
[[ -z $open ]] || fail "left open to others: $open"
kill "$(pgrep -P $weir -x drops)"; wait $weir || true
