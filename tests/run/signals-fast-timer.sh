# A timer that is about as fast as the kernel can be, with system calls; and one that is faster than anybody: the program gets on.
. "$(dirname "$0")/lib.sh"
compile fast.c <<'C'
#include "posix.h"
static volatile long signals, stop;
static const struct itimerval never;
static void tick(int number, siginfo_t *info, void *context) { signals++; if (stop) setitimer(ITIMER_REAL, &never, NULL); }
__attribute__((noipa)) static long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int main(int argc, char **argv) {
  int period = atoi(argv[1]);
  struct itimerval often = {{0, period}, {0, period}};
  on_signal(SIGALRM, tick, 0);
  setitimer(ITIMER_REAL, &often, NULL);
  if (argc > 2) { CHECK(fib(10) == 55); stop = 1; while (!signals); }
  else for (int i = 0; i < 1000 || signals < 10; i++) getppid();
  setitimer(ITIMER_REAL, &never, NULL);
  puts("done");
}
C
for ((period = 10; period < 10000; period *= 2)); do TIMEOUT=2 run native "$T/fast" $period; [[ $(<"$T/native.status") != 0 ]] || break; done
same "$T/fast" $((period * 4))
run native "$T/fast" 10000 computes
for tool in none icount; do
  run weir "$WEIR" run -q --tool=$tool -- "$T/fast" 1 computes
  cmp "$T/native.out" "$T/weir.out" || fail "$tool: $(<"$T/weir.status")"
done
run weir "$WEIR" profile -q -o "$T/run.weir" -- "$T/fast" 1 computes
cmp "$T/native.out" "$T/weir.out" || fail "profile: $(<"$T/weir.status")"
