# Page faults are OS work of the function that touched the page, counted and measured: as many, and about the time, that getrusage() tells of
# a native run. They are those of the thread, and of the process, that touched.
. "$(dirname "$0")/lib.sh"
need sqlite3 python3
compile touches.c -O1 -pthread <<'C'
#include "posix.h"
#include <sys/resource.h>
enum { Page = 4096 };
static char *fresh(long pages) {
  char *p = mmap(0, pages * Page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(p != MAP_FAILED && !madvise(p, pages * Page, MADV_NOHUGEPAGE));
  return p;
}
__attribute__((noipa)) static void touch(char *p, long pages) { for (long i = 0; i < pages; i++) p[i * Page] = 1; }
__attribute__((noipa)) static void touch_in_thread(char *p, long pages) { for (long i = 0; i < pages; i++) p[i * Page] = 1; }
__attribute__((noipa)) static void copy_on_write(char *p, long pages) { for (long i = 0; i < pages; i++) p[i * Page] = 2; }
__attribute__((noipa)) static void works(void) { for (volatile long i = 0; i < 100000; i++); }
__attribute__((noipa)) static void many(void) { works(); touch(fresh(20000), 20000); works(); }
static void *thread(void *x) { touch_in_thread(fresh(3000), 3000); return x; }
static long system_time(void) {
  struct rusage u; getrusage(RUSAGE_SELF, &u);
  return u.ru_stime.tv_sec * 1000000 + u.ru_stime.tv_usec + 0;
}
int main() {
  long before = system_time();
  many();
  fprintf(stderr, "%ld\n", system_time() - before);
  pthread_t t; pthread_create(&t, 0, thread, 0); pthread_join(t, 0);
  char *shared = fresh(2000); touch(shared, 2000);
  if (!fork()) { copy_on_write(shared, 2000); _exit(0); }
  int status; wait(&status);
  puts("done");
}
C
run native "$T/touches"
profile "$T/touches"
may_use_perf() {
  python3 -c 'import ctypes, struct, sys; sys.exit(ctypes.CDLL(None).syscall(298, struct.pack("IIQQQQQ", 1, 112, 2, 1, 0, 0, 0x20 | 0x40) + bytes(112 - 48), 0, -1, -1, 0) < 0)'
}
may_use_perf || { [[ $(report) == *"page faults could not be counted"* ]] || fail "no faults, and no note"; exit 0; }
of() { ask "SELECT coalesce(sum(c.$2), 0) FROM os_count c JOIN os_call o USING (number) JOIN function f ON f.id = c.function JOIN string n ON n.id = f.name JOIN thread t ON t.id = c.thread
            WHERE o.name = 'page fault' AND n.text = '$1' ${3:-}"; }
about() { (( $2 >= $3 && $2 <= $3 + $3 / 50 + 5 )) || fail "$1: $2 page faults, not $3"; }
about touch "$(of touch calls)" 22000
about touch_in_thread "$(of touch_in_thread calls 'AND t.tid != (SELECT pid FROM process WHERE id = t.process)')" 3000
about copy_on_write "$(of copy_on_write calls 'AND t.process > 0')" 2000
about works "$(of works calls)" 0
# What the clock tells of system time is by ticks on some machines, and both runs may be disturbed: far off is wrong.
python3 - "$(of touch time)" "$(ask 'SELECT cycles_per_second FROM run')" "$(<"$T/native.err")" <<'P' || fail "the time of page faults"
import sys
cycles, rate, native = map(int, sys.argv[1:])
us = cycles * 1e6 / rate * 20 / 22
print(f"{us:.0f} us, natively {native}")
sys.exit(not native / 8 < us < max(native, 1000) * 8)
P
# Callers have what they called took; nobody has more than there is, nor less than the function itself.
answers "SELECT count(*) FROM function_count c JOIN thread t ON t.id = c.thread WHERE c.os_time_total > t.os_time OR c.os_time > c.os_time_total" <<<0
answers "SELECT count(*) FROM thread t WHERE os_time != (SELECT sum(os_time) FROM function_count WHERE thread = t.id)" <<<0
answers "SELECT name, os_calls, os_time_total >= (SELECT os_time FROM function_total WHERE name = 'touch') FROM function_total WHERE name IN ('main', 'touch', 'works') ORDER BY 1" <<<$'main|0|1\ntouch|0|1\nworks|0|0'
[[ $(report oscalls) == *'page fault'*touch* && $(report functions --os-calls=separate) == *'[page fault]'* ]] || fail "$(report oscalls)"
# By call paths the same.
OPTIONS=--paths=full profile "$T/touches"
about touch "$(of touch calls)" 22000
answers "SELECT count(*) FROM (SELECT f.thread, f.function FROM function_count f JOIN context c ON c.thread = f.thread AND c.function = f.function GROUP BY 1, 2 HAVING sum(c.os_time) != f.os_time)" <<<0
answers "SELECT sum(c.os_time_total) >= (SELECT os_time FROM function_total WHERE name = 'touch') FROM context c JOIN function f ON f.id = c.function JOIN string n ON n.id = f.name WHERE n.text = 'main'" <<<1
