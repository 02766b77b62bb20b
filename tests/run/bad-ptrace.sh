# When ptrace is refused Weir says so, with the remedy, and nothing runs.
. "$(dirname "$0")/lib.sh"
compile refuse.c <<'C'
#include "posix.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
int main(int argc, char **argv) {
  struct sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog program = {4, code};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
  execv(argv[1], argv + 1);
}
C
expect_fail 125 'ptrace' "$T/refuse" "$WEIR" run -- touch "$T/made"
[[ ! -e $T/made ]] || fail "the program ran without Weir"
