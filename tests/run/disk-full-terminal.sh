# Where no place takes a profile, it stays in memory, and who sits at the terminal is asked to make room.
. "$(dirname "$0")/lib.sh"
unshare --mount true 2>/dev/null || skip 'no mount namespace can be made here'
mkdir "$T/weir"
cp "$WEIR" "$(dirname "$WEIR")"/libweir_*.so "$T/weir/"
cat >"$T/asked.py" <<'P'
import os, pty, sys
weir, directory = sys.argv[1:]
def ask(answer, is_freed):
    pid, terminal = pty.fork()
    if pid == 0: os.execv(weir, [weir, 'profile', '-q', '-o', directory + '/run.weir', '--', 'true'])
    said = b''
    while b'press Enter' not in said: said += os.read(terminal, 4096)
    if is_freed: os.system('mount -o remount,size=100m ' + directory)
    os.write(terminal, answer)
    try:
        while part := os.read(terminal, 4096): said += part
    except OSError: pass
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said
status, said = ask(b'\x04', False)
assert status == 125 and b'nothing was written' in said, (status, said)
status, said = ask(b'\n', True)
assert status == 0 and b'the disk is full; nor has any' in said and os.path.getsize(directory + '/run.weir') > 65536, (status, said)
P
timeout -k 5 $LIMIT unshare --mount bash -c "set -e
  mount --make-rprivate /
  mount --bind '$T' /mnt
  for place in /var/tmp /dev/shm; do mount -t tmpfs -o ro tmpfs \$place; done
  mount -t tmpfs -o size=64k tmpfs /tmp
  TMPDIR=/tmp/none HOME=/tmp/none XDG_CACHE_HOME=/tmp/none python3 /mnt/asked.py /mnt/weir/weir /tmp" || fail 'at a terminal'
