# Where the CPU clock may not be read (a system call filter), or no time at all (PR_SET_TSC), that is said, with how many calls it concerns.
. "$(dirname "$0")/lib.sh"
need sqlite3
compile quiet.c -O1 -static <<'C'
#include "posix.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
int main() {
  struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog program = {1, &allow};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
  usleep(300000);
  for (int i = 0; i < 1000; i++) getppid();
  puts("done");
}
C
profile "$T/quiet"
answers "SELECT sum(waited) > cycles_per_second * 0.299, sum(os_time) < cycles_per_second / 10 FROM thread, run" <<<'1|1'
report | grep -Eq 'note .*thread [0-9]+: [0-9]+ OS calls? that may wait could not be divided' || fail "$(report)"
compile blind.c -O1 -static <<'C'
#include "posix.h"
#include <sys/prctl.h>
int main() { prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0); for (int i = 0; i < 7; i++) getppid(); prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0); usleep(300000); puts("done"); }
C
profile "$T/blind"
answers "SELECT sum(waited) > cycles_per_second * 0.299 FROM thread, run" <<<1
report | grep -Eq 'note .*thread [0-9]+: [0-9]+ OS calls have no time' || fail "$(report)"
