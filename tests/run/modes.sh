# issue 4, 4: nothing of Weir's can be read by other users: profiles, the cache, shared memory. What is written with -o and --json for
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
"$WEIR" run -- sleep 60 & weir=$!
for ((i = 0; i < 500; i++)); do pid=$(pgrep -P $weir -x sleep || true); [[ -z $pid ]] || ! grep -q weir-cache /proc/$pid/maps || break; sleep 0.02; done
open=$(find -L /proc/$weir/fd -type f -perm /077 -exec readlink {} + | grep -E 'memfd:weir-|/\.cache/weir/' || true)
[[ -z $open ]] || fail "others may read $open"
[[ $(find /proc/$weir/fd -lname '/memfd:weir-*' | wc -l) -ge 4 ]] || fail 'no shared memory'
[[ $(find /proc/$weir/fd -lname 'socket:*' | wc -l) == 0 ]] || fail 'a socket'
kill $pid; wait $weir || true
