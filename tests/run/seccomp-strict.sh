# Seccomp's strict mode: only read, write, exit and sigreturn are left.
. "$(dirname "$0")/lib.sh"
compile strict.c <<'C'
#include "posix.h"
#include <linux/seccomp.h>
__attribute__((noipa)) static uint64_t later(int n) { uint64_t sum = 0; for (int i = 0; i < n; i++) sum = mix(sum, i); return sum; }   // first reached in strict mode
int main(int argc, char **argv) {
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
  char text[20] = "strict: x\n"; text[8] = 'a' + later(1000) % 26;
  write(1, text, 10);
  if (argc > 1) syscall(SYS_getpid);
  syscall(SYS_exit, 5);
}
C
STATUS=5 same "$T/strict"
STATUS=137 same "$T/strict" forbidden
