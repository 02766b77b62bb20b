# Memory at fixed addresses, also where Weir's own is: the program gets it, whole and in parts, in use or not, with threads, signals and children.
. "$(dirname "$0")/lib.sh"
compile fixed.c <<'C'
#include "posix.h"
int main(void) {
  static char buffer[4096];
  setvbuf(stdout, buffer, _IOFBF, sizeof buffer);  // (the heap lies anywhere, also at such an address)
  int got = 0, tried = 0;
  for (int bit = 16; bit < 47; bit++)
    for (unsigned long add = 0; add < 8; add++) {
      unsigned long at = (1ul << bit) + (add << (bit - 3));
      char *p = mmap((void *)at, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
      if (tried++, p == (char *)at) *p = 1, got++, munmap(p, 4096);
      else printf("not at %#lx\n", at);
    }
  printf("%d of %d\n", got, tried);
  void *low = mmap(0, 700 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_32BIT, -1, 0);
  printf("%d\n", low == MAP_FAILED);
}
C
same "$T/fixed"
build "$T/fixed.c" "$T/fixed-low" -no-pie
same "$T/fixed-low"
# All of where the table lies, in one piece and with a hint, while other threads run, are in calls, and take signals.
compile low.c <<'C'
#include "posix.h"
static volatile int over, ticks;
static long __attribute__((noinline)) fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static void tick(int s) { ticks++; }
static void *work(void *how) {
  long sum = 0; int fds[2]; char c; struct timespec t = {0, 1000000};
  if (how) { while (!over) nanosleep(&t, 0); return 0; }
  do sum = fib(20); while (!over);
  return (void *)sum;
}
int main(int argc, char **argv) {
  unsigned long begin = strtoul(argv[1], 0, 0), size = strtoul(argv[2], 0, 0); int flags = atoi(argv[3]) ? MAP_FIXED : 0;
  struct itimerval timer = {{0, 3000}, {0, 3000}};
  pthread_t threads[4]; void *r;
  signal(SIGALRM, tick), setitimer(ITIMER_REAL, &timer, 0);
  for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, (void *)(i & 1));
  printf("%ld\n", fib(15));
  char *p = mmap((void *)begin, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
  printf("%d\n", p == (char *)begin);
  for (unsigned long at = 0; p != MAP_FAILED && at < size; at += size / 64) p[at] = at >> 20;
  if (fork() == 0) { long sum = fib(16); for (unsigned long at = 0; at < size; at += size / 64) sum += p[at]; printf("%ld\n", sum), fflush(stdout), _exit(0); }
  wait(0);
  while (ticks < 3) fib(10);
  over = 1;
  for (int i = 0; i < 4; i++) pthread_join(threads[i], &r), printf("%ld\n", (long)r);
  long sum = 0; for (unsigned long at = 0; at < size; at += size / 64) sum += p[at];
  printf("%ld %d\n", sum, munmap(p, size));
}
C
for where in '0x70000000 0x800000000 1' '0x100000000 0x780000000 1' '0x270000000 0x400000000 0' '0x72000000 0x1000000 1'; do
  # shellcheck disable=SC2086
  same "$T/low" $where
done
build "$T/low.c" "$T/low-fixed" -no-pie
for where in '0x50000000 0x20000000 1' '0x48000000 0x800000000 1'; do
  # shellcheck disable=SC2086
  same "$T/low-fixed" $where
done
