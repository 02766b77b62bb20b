# spec 3, S8: a program that forbids itself system calls is not ended for one of ours; it is sampled all the same.
. "$(dirname "$0")/lib.sh"
compile strict.c <<'C'
#include "posix.h"
#include <linux/seccomp.h>
static volatile long n;
__attribute__((noipa)) static void confined(void) { for (long i = 0; i < 300000000; i++) n++; }
int main() {
  for (long i = 0; i < 50000000; i++) n++;
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
  confined();
  write(1, "right\n", 6), syscall(SYS_exit, 3);
}
C
RATE=2000 STATUS=any sampled "$T/strict"
[[ $(<"$T/native.status") == 3 ]] || fail "natively: $(<"$T/native.status")"

# Nor in the instant after it, though the handler has just had a clock to ask: many periods passed in each call.
compile strict-late.c <<'C'
#include "posix.h"
#include <linux/seccomp.h>
static char buffer[64 << 20];
int main() {
  int zero = open("/dev/zero", O_RDONLY);
  for (int i = 0; i < 40; i++) CHECK(read(zero, buffer, sizeof buffer) == sizeof buffer);
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
  for (int i = 0; i < 10; i++) read(zero, buffer, sizeof buffer);
  write(1, "right\n", 6), syscall(SYS_exit, 3);
}
C
RATE=2000 STATUS=any sampled "$T/strict-late"
[[ $(<"$T/native.status") == 3 ]] || fail "natively: $(<"$T/native.status")"
