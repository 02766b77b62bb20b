# OS calls that take many periods have as many samples, in the function that makes them, though a thread is interrupted behind them,
# once. The program's own getrusage() is the truth.
. "$(dirname "$0")/lib.sh"
compile long_calls.c -pthread -fno-optimize-sibling-calls <<'C'
#include "posix.h"
#include <pthread.h>
#include <sys/random.h>
#include <sys/resource.h>
enum { size = 32 << 20 };
static volatile long n;
static char *memory;
#define PHASE(name, body) __attribute__((noipa)) static void name(int fd) { body; }
PHASE(reads, CHECK(pread(fd, memory, size, 0) == size))
PHASE(randoms, for (long i = 0; i < size / 4;) { long got = getrandom(memory + i, size / 4 - i, 0); CHECK(got > 0); i += got; })
PHASE(maps, munmap(mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0), size))
PHASE(faults, char *p = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); memset(p, 1, size); munmap(p, size))
PHASE(works, for (long i = 0; i < 5000000; i++) n++)
static long used(void) {
  struct rusage u;
  getrusage(RUSAGE_THREAD, &u);
  return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 + u.ru_utime.tv_usec + u.ru_stime.tv_usec;
}
static void *all(void *file) {
  static const struct { const char *name; void (*run)(int); } phases[] = {
      {"reads", reads}, {"works", works}, {"randoms", randoms}, {"maps", maps}, {"faults", faults}};
  long sums[5] = {0}, before;
  for (int i = 0; i < 5; i++)
    for (before = used(); sums[i] < 250000; sums[i] = used() - before) phases[i].run(*(int *)file);
  for (int i = 0; i < 5; i++) printf("%s %ld\n", phases[i].name, sums[i]);
  return 0;
}
int main(int argc, char **argv) {
  pthread_t thread;
  int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
  memory = malloc(size), memset(memory, 1, size);
  CHECK(pwrite(fd, memory, size, 0) == size);
  if (argc == 2) return all(&fd), 0;
  CHECK(!pthread_create(&thread, 0, all, &fd) && !pthread_join(thread, 0));
}
C
# Within a fifth, and what a run on a busy machine adds: that is more than a single sample of each call by far.
agrees() {
  local name us
  while read -r name us; do
    [[ $(ask "SELECT coalesce(sum(t.total), 0) / s.rate BETWEEN 0.8e-6 * $us - 0.02 AND 1.25e-6 * $us + 0.02
              FROM function_total t, sampling s WHERE t.name = '$name'") == 1 ]] ||
      fail "$name took $us µs, and has $(ask "SELECT total FROM function_total WHERE name = '$name'") samples: $(<"$T/weir.out") $(report functions)"
  done <"$T/weir.out"
}
for threads in '' more; do
  run weir "$WEIR" sample -q -o "$T/run.weir" -- "$T/long_calls" "$T/file" $threads
  [[ $(<"$T/weir.status") == 0 ]] || fail "$(<"$T/weir.err")"
  [[ $(ask 'SELECT sees_kernel FROM sampling') == 1 ]] || skip "time in the kernel is not to be had"
  agrees
done
