# The program becomes another user, whom Weir may not write files for, and executes a program.
. "$(dirname "$0")/lib.sh"
need setpriv
((EUID == 0)) || skip 'only root can become another user'
user='setpriv --reuid=65534 --regid=65534 --clear-groups'
[[ $($user id -u) == 65534 ]] || skip 'setpriv is not permitted'
said() {  # said N: at most that many programs were not followed, and nothing else is said
  ! grep -v '^weir: not followed' "$T/weir.err" && (($(wc -l <"$T/weir.err") <= $1)) || fail "stderr: $(head -c 1000 "$T/weir.err")"
}
same_out $user id; said 1
same_out $user sh -c 'id -u; (exit 3); echo $?; ls -d / | wc -l'; said 1
STATUS=4 same_out sh -c "$user id -g; $user sh -c 'exit 4'"; said 2
