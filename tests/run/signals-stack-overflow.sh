# A handler of stack overflow on an alternate stack, left by siglongjmp, again and again; in threads too.
. "$(dirname "$0")/lib.sh"
compile overflow.c -pthread <<'C'
#include "posix.h"
static __thread sigjmp_buf back; static __thread int depth;
static void handler(int number, siginfo_t *info, void *context) {
  long rsp = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RSP];
  CHECK(labs((long)info->si_addr - rsp) < 65536);
  siglongjmp(back, 1);
}
__attribute__((noipa)) static int endless(int n) { volatile char room[1000]; room[n % 1000] = n; depth = n; return endless(n + 1) + room[5]; }
static void *run(void *argument) {
  stack_t stack = {malloc(65536), 0, 65536};
  sigaltstack(&stack, NULL);
  for (volatile int i = 0; i < 20; i++) if (!sigsetjmp(back, 1)) endless(0); else CHECK(depth > 100);
  return NULL;
}
int main() {
  struct rlimit limit = {1 << 20, RLIM_INFINITY}; setrlimit(RLIMIT_STACK, &limit);
  on_signal(SIGSEGV, handler, SA_ONSTACK);
  run(NULL), puts("main");
  pthread_t threads[4]; pthread_attr_t attributes; pthread_attr_init(&attributes), pthread_attr_setstacksize(&attributes, 256 << 10);
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], &attributes, run, NULL);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  puts("threads"), fflush(stdout);
  signal(SIGSEGV, SIG_DFL);
  endless(0);
}
C
STATUS=139 same "$T/overflow"
