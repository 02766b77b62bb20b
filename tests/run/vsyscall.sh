# Calls to the vsyscall page, outside of what a process can map.
. "$(dirname "$0")/lib.sh"
grep -q 'x.*\[vsyscall\]' /proc/self/maps || skip 'the kernel has no vsyscall page'
compile vsyscall.c <<'C'
#include "posix.h"
static int (*volatile get_time)(struct timeval *, void *) = (void *)0xffffffffff600000;
static time_t (*volatile seconds)(time_t *) = (void *)0xffffffffff600400;
static int (*volatile get_cpu)(unsigned *, unsigned *, void *) = (void *)0xffffffffff600800;
int main() {
  for (int i = 0; i < 1000; i++) {
    struct timeval now; unsigned cpu = -1, node = -1; time_t stored, early = time(NULL), t = seconds(&stored);
    CHECK(t == stored && t >= early - 1 && get_time(&now, NULL) == 0 && now.tv_sec >= t - 1);
    CHECK(get_cpu(&cpu, &node, NULL) == 0 && cpu < 100000);
  }
  uint64_t sum = 0; for (uint64_t n = 0; n < 100000; n++) sum = mix(sum, n);
  printf("%lx\n", sum);
}
C
same "$T/vsyscall"
