# Handlers that have an alternate stack and leave it by siglongjmp, again and again: each ends there, and with it the leaf that it interrupted. The stack
# is elsewhere, or in the frame of who goes on; a second handler may be on it.
. "$(dirname "$0")/lib.sh"
compile left.c <<'C'
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static sigjmp_buf out;
static int times;
static void on_user(int s) { siglongjmp(out, 1); }
static void on_fault(int s) { if (++times % 2) raise(SIGUSR1); siglongjmp(out, 1); }
__attribute__((noinline)) int leaf(volatile int *p) { return *p + 1; }
__attribute__((noinline)) int outer(int n) { return n ? outer(n - 1) + n : leaf(0) + getppid(); }
__attribute__((noinline)) void fault(char *room) {
  char own[65536];
  stack_t stack = {room ? room : own, 0, 65536};
  sigaltstack(&stack, NULL);
  for (volatile int i = 0; i < 300; i++)
    if (!sigsetjmp(out, 1)) i % 3 ? leaf(0) : outer(3);
}
int main() {
  struct sigaction a = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK}, b = {.sa_handler = on_user, .sa_flags = SA_ONSTACK};
  sigaction(SIGSEGV, &a, NULL), sigaction(SIGUSR1, &b, NULL);
  if (fork()) return wait(NULL), 0;
  fault(malloc(65536)), fault(NULL);
  _exit(times != 600);
}
C
same "$T/left"
profile "$T/left"
answers "SELECT name, calls, self_max < 2 * self_min, total < 2000 * calls FROM function_total WHERE name IN ('leaf', 'on_fault', 'on_user') ORDER BY 1" <<E2
leaf|600|1|1
on_fault|600|1|1
on_user|300|1|1
E2
