# The time of OS calls is the processor's, and measured: none is invented from a length, what Weir does inside a call is taken out, and
# what the kernel does for long is work. The oracle is what the kernel says that it has used, and the time that passed.
. "$(dirname "$0")/lib.sh"
need sqlite3
compile work.c -O1 -fno-inline -static <<'C'
#include "posix.h"
#include <sys/mman.h>
#include <sys/resource.h>
#include <x86intrin.h>
static unsigned long system_time() { struct rusage u; getrusage(RUSAGE_SELF, &u); return u.ru_stime.tv_sec * 1000000ul + u.ru_stime.tv_usec; }
void shadow() { void *p = mmap(0, 1ul << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0); mprotect(p, 1ul << 40, PROT_NONE); munmap(p, 1ul << 40); }
void blocks() { for (int i = 0; i < 100; i++) { volatile char *p = malloc(64 << 20); p[0] = 1; free((void *)p); } }
void fails() { char *args[] = {"x", 0}; for (int i = 0; i < 200; i++) execv("/nonexistent/x", args); }
void zeros() { static char b[1 << 20]; int fd = open("/dev/zero", O_RDONLY); for (int i = 0; i < 3000; i++) read(fd, b, sizeof b); }
int main() {
  shadow(); blocks();
  unsigned long begin = __rdtsc(); fails(); unsigned long failing = __rdtsc() - begin;
  unsigned long used = system_time(); zeros(); used = system_time() - used;
  printf("%lu %lu\n", failing, used);
}
C
profile "$T/work"
read -r failing used <"$T/profile.out"
os() { echo "(SELECT os_time_total FROM function_total WHERE name = '$1')"; }
# All of them together took less than the run. (Lengths made 16 G cycles of the first, and 150 M of the second.)
answers "SELECT os_time + waited < (ended - started) / 1e6 * cycles_per_second FROM (SELECT sum(os_time) AS os_time, sum(waited) AS waited FROM thread), run" <<<1
answers "SELECT $(os shadow) < cycles_per_second / 50, $(os blocks) < cycles_per_second / 20 FROM run" <<<'1|1'
# Nearly all of the time in which execve failed was Weir's.
answers "SELECT sum(c.calls), sum(c.errors), sum(c.time) > 0, sum(c.time + c.waited) < $failing / 3 FROM os_count c JOIN os_call o USING (number) WHERE o.name = 'execve'" <<<'200|200|1|1'
answers "SELECT $(os zeros) * 1e6 / cycles_per_second BETWEEN $used * 0.5 - 20000 AND $used * 2 + 20000 FROM run" <<<1
# By the model of classes calls that cannot wait take the same in each run, and lengths count only where time depends on them.
OPTIONS=--os-model=classes profile "$T/work"
answers "SELECT o.name, sum(c.time) % 600, sum(c.time) < 600 * 1000 FROM os_count c JOIN os_call o USING (number) WHERE o.name IN ('mmap', 'munmap', 'mprotect') GROUP BY 1 ORDER BY 1" <<<$'mmap|0|1\nmprotect|0|1\nmunmap|0|1'
answers "SELECT os_model FROM run" <<<classes
report | grep -q 'by the model of classes' || fail "$(report)"
report oscalls | grep -q 'by the model of classes' || fail "$(report oscalls)"
