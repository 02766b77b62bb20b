# spec 3, S8: no room in the address space is told; descriptors, processes and file sizes that are limited are no matter.
. "$(dirname "$0")/lib.sh"
(ulimit -v 4000000; expect_fail 125 'annot allocate|no room' "$WEIR" sample -o "$T/x.weir" -- true) || exit 1
RATE=5000 sampled sh -c 'ulimit -v 4000000; /bin/echo one; (exec /bin/echo two); exec /bin/echo three'
(ulimit -n 16; expect_fail 125 'ulimit -n 64' "$WEIR" sample -o "$T/x.weir" -- true) || exit 1
(ulimit -f 10; expect_fail 125 'ulimit -f' "$WEIR" sample -o "$T/x.weir" -- true) || exit 1
(ulimit -n 64; RATE=5000 sampled sh -c 'ulimit -n; echo $(seq 3)') || exit 1
compile own.c <<'C'
#include "posix.h"
int main() {
  for (int r = 0; r < RLIM_NLIMITS; r++) { struct rlimit l; CHECK(getrlimit(r, &l) == 0); if (r != RLIMIT_AS) printf("%d: %ld %ld\n", r, l.rlim_cur, l.rlim_max); }
  for (int fd = 0; fd < 40; fd++) if (fcntl(fd, F_GETFD) != -1) printf("descriptor %d\n", fd);
}
C
sampled "$T/own"
