# Weir is killed while a process with a seccomp filter forks: the child, which can make no call to look for Weir, ends.
. "$(dirname "$0")/lib.sh"
compile forks.c <<'C'
#include "posix.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
int main() {
  struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog all = {1, &allow};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) == 0);
  for (;;) if (fork() == 0) _exit(0); else wait(NULL);
}
C
marked() { grep -lzsx "MARK=$T" /proc/[0-9]*/environ | cut -d/ -f3 || true; }
nobody() { [[ ! $(marked) ]]; }
for ((i = 0; i < 30; i++)); do
  MARK=$T "$WEIR" run -- "$T/forks" 2>/dev/null & weir=$!
  sleep 0.$((RANDOM % 4))$((RANDOM % 10))
  kill -KILL $weir; wait $weir 2>/dev/null || true
  wait_for nobody || { left=$(marked); kill -KILL $left; fail "left running: $left"; }
done
