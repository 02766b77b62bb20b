# Threads that give the processor away often have more signals than periods have passed: not more samples.
. "$(dirname "$0")/lib.sh"
compile turns.c -pthread <<'C'
#include "posix.h"
#include <sys/resource.h>
enum { threads = 4 };
static int there[threads][2], back[threads][2];
static void *work(void *number) { char c; long t = (long)number; while (read(there[t][0], &c, 1) == 1) CHECK(write(back[t][1], &c, 1) == 1); return NULL; }
int main(int argc, char **argv) {
  pthread_t t[threads]; char c = 0; struct rusage r;
  for (long i = 0; i < threads; i++) CHECK(!pipe(there[i]) && !pipe(back[i]) && !pthread_create(t + i, NULL, work, (void *)i));
  for (int i = 0; i < 15000; i++) {
    for (int k = 0; k < threads; k++) CHECK(write(there[k][1], &c, 1) == 1);
    for (int k = 0; k < threads; k++) CHECK(read(back[k][0], &c, 1) == 1);
  }
  for (int i = 0; i < threads; i++) close(there[i][1]), pthread_join(t[i], NULL);
  getrusage(RUSAGE_SELF, &r);
  FILE *f = fopen(argv[1], "w");
  fprintf(f, "%ld\n", (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000 + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1000);
  fclose(f); puts("right");
}
C
run weir "$WEIR" sample -q -F 500 -o "$T/run.weir" -- "$T/turns" "$T/used"
[[ $(<"$T/weir.out") == right ]] || fail "$(<"$T/weir.err")"
[[ $(ask 'SELECT sees_kernel FROM sampling') == 1 ]] || skip "time in the kernel is not to be had"
told=$(ask 'SELECT 1000 * sum(cycles) / cycles_per_second FROM thread, run')
[[ $(ask "SELECT $told BETWEEN 0.85 * $(<"$T/used") - 10 AND 1.02 * $(<"$T/used") + 5") == 1 ]] || fail "$told ms of $(<"$T/used") ms"
