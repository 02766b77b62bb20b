# Where perf is not allowed page faults are in no figure, and a note says so. So it is with --clock=wall, where they are in the time that
# passes, without one.
. "$(dirname "$0")/lib.sh"
need sqlite3
library deny.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>
long syscall(long number, ...) {
  static long (*real)(long, ...);
  if (!real) real = dlsym(RTLD_NEXT, "syscall");
  if (number == SYS_perf_event_open) return errno = EACCES, -1;
  va_list v; va_start(v, number);
  long a[6]; for (int i = 0; i < 6; i++) a[i] = va_arg(v, long);
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
C
faults() { ask "SELECT count(*) FROM os_count c JOIN os_call o USING (number) WHERE o.name = 'page fault'"; }
(export LD_PRELOAD="$T/libdeny.so"; run profile "$WEIR" profile -q -o "$T/run.weir" -- /bin/ls /)
[[ $(<"$T/profile.status") == 0 && $(faults) == 0 ]] || fail "$(head -c 1000 "$T/profile.err"): $(faults) functions with page faults"
[[ $(report) == *'page faults could not be counted, and are in no OS time: perf_event_open: Permission denied'* ]] || fail "$(report)"
OPTIONS=--clock=wall profile /bin/ls /
[[ $(faults) == 0 && $(report) != *'page faults'* ]] || fail "$(report)"
