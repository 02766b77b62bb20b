# Signals while a handler on the alternate stack is in the runtime: their frames are below what it has there, not above.
. "$(dirname "$0")/lib.sh"
compile nested.c <<'C'
#include "posix.h"
static char alternate[1 << 16]; static volatile int ticks, bad;
static void tick(int number, siginfo_t *info, void *context) { ticks++; }
static void outer(int number, siginfo_t *info, void *context) {
  volatile uint64_t local[64];
  for (int i = 0; i < 64; i++) local[i] = i * 77 + 5;
  CHECK((char *)local > alternate && (char *)local < alternate + sizeof alternate);
  for (int k = 0; k < 300; k++) {
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED && munmap(p, 4096) == 0);
    for (int i = 0; i < 64; i++) bad += local[i] != i * 77 + 5;
  }
}
int main() {
  stack_t stack = {alternate, 0, sizeof alternate}; sigjmp_buf jump;
  CHECK(sigaltstack(&stack, NULL) == 0);
  on_signal(SIGUSR1, outer, SA_ONSTACK), on_signal(SIGALRM, tick, SA_ONSTACK);
  struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &often, NULL);
  for (int i = 0; i < 20 || ticks < 20; i++) raise(SIGUSR1);
  setitimer(ITIMER_REAL, &never, NULL);
  if (!fork()) { raise(SIGUSR1); printf("child: %d\n", bad); fflush(stdout); _exit(0); }
  wait(NULL);
  printf("%d\n", bad);
}
C
same "$T/nested"
