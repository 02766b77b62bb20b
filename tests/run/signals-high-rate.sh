# Asynchronous signals at a high rate, while the program computes.
. "$(dirname "$0")/lib.sh"
compile rate.c <<'C'
#include "posix.h"
static volatile int signals; static uint64_t by_handler;
static void tick(int number, siginfo_t *info, void *context) { by_handler = mix(by_handler, number); signals++; }
typedef uint64_t step(uint64_t);
__attribute__((noipa)) static uint64_t a(uint64_t x) { return x * 3 + (x >> 7); }
__attribute__((noipa)) static uint64_t b(uint64_t x) { return x & 64 ? x / 3 : x * 5; }
__attribute__((noipa)) static uint64_t fib(uint64_t n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static step *volatile steps[] = {a, b, fib};
static uint64_t work(void) {
  uint64_t sum = 1; double d = 1;
  for (int i = 0; i < 3000; i++) {
    sum = steps[i & 1](sum), d = d * 1.0001 + i;
    switch (sum % 7) { case 0: sum += 5; break; case 1: sum ^= i; break; case 2: sum -= 9; break; case 3: sum <<= 1; break; case 4: sum = ~sum; break; case 5: sum += d; break; }
  }
  return mix(sum, d) + steps[2](12);
}
int main() {
  uint64_t expected = work(); timer_t timer;
  on_signal(SIGRTMIN, tick, 0);
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
  struct itimerspec often = {{0, 200000}, {0, 200000}};
  timer_create(CLOCK_MONOTONIC, &event, &timer), timer_settime(timer, 0, &often, NULL);
  while (signals < 3000) CHECK(work() == expected);
  timer_delete(timer);
  uint64_t sum = 0; for (int i = 0; i < signals; i++) sum = mix(sum, SIGRTMIN);
  printf("%lx, handlers %s\n", expected, sum == by_handler ? "right" : "wrong");
}
C
same "$T/rate"
