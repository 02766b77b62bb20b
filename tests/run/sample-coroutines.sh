# Coroutines on stacks of their own, and handlers on alternate stacks: each sample is the same in full, and has its callers.
. "$(dirname "$0")/lib.sh"
compile co.c <<'C'
#include "posix.h"
static ucontext_t back, there[4]; static int at; static volatile long n, handled;
__attribute__((noipa)) static void spin(long k) { for (long i = 0; i < k; i++) n++; }
__attribute__((noipa)) static void turn(int depth) { if (depth) { turn(depth - 1); n++; return; } spin(20000); swapcontext(&there[at], &back); }
__attribute__((noipa)) static void coroutine(void) { for (;;) turn(5 + at); }
__attribute__((noipa)) static void in_handler(int number, siginfo_t *info, void *context) { spin(20000); handled++; }
int main() {
  for (at = 0; at < 4; at++) {
    getcontext(&there[at]);
    there[at].uc_stack.ss_sp = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), there[at].uc_stack.ss_size = 65536;
    makecontext(&there[at], coroutine, 0);
  }
  stack_t other = {.ss_sp = malloc(65536), .ss_size = 65536};
  CHECK(sigaltstack(&other, NULL) == 0);
  on_signal(SIGUSR1, in_handler, SA_ONSTACK);
  for (int i = 0; i < 4000; i++) { at = i % 4, swapcontext(&back, &there[at]); if (i % 4 == 0) raise(SIGUSR1); }
  printf("%ld\n", handled);
}
C
OPTIONS=--verify sampled "$T/co"
seen turn coroutine in_handler main
[[ $(ask 'SELECT verify_differences, 10 * truncated < samples FROM sampling') == '0|1' ]] || fail "$(report)"
