# Alternate stacks: used, nested, queried, auto-disarmed, one for each thread.
. "$(dirname "$0")/lib.sh"
compile altstack.c -pthread <<'C'
#include "posix.h"
static __thread char *mine; static sigjmp_buf back;
static int on(char *stack, void *address) { return (char *)address >= stack && (char *)address < stack + 65536; }
static void handler(int number, siginfo_t *info, void *context) {
  stack_t now; sigaltstack(NULL, &now); char local;
  ucontext_t *uc = context;
  printf("signal %d on altstack %d, flags %d, uc_stack %d %d\n", number, on(mine, &local), now.ss_flags, (char *)uc->uc_stack.ss_sp == mine, uc->uc_stack.ss_flags);
  if (number == SIGUSR1) { raise(SIGUSR2); CHECK(sigaltstack(&now, NULL) == -1 && errno == EPERM); }
}
static void *run(void *argument) {
  mine = malloc(65536);
  stack_t stack = {mine, (int)(long)argument, 65536}, old;
  CHECK(sigaltstack(&stack, NULL) == 0);
  raise(SIGUSR1), raise(SIGUSR2), raise(SIGALRM);
  CHECK(sigaltstack(NULL, &old) == 0 && old.ss_sp == mine && old.ss_size == 65536);
  printf("flags %x\n", old.ss_flags);
  stack.ss_flags = SS_DISABLE, sigaltstack(&stack, NULL);
  raise(SIGUSR2);
  return NULL;
}
int main() {
  on_signal(SIGUSR1, handler, SA_ONSTACK), on_signal(SIGUSR2, handler, SA_ONSTACK), on_signal(SIGALRM, handler, 0);
  run(0);
  for (int i = 0; i < 3; i++) { pthread_t thread; pthread_create(&thread, NULL, run, 0); pthread_join(thread, NULL); }
  mine = malloc(65536);
  stack_t disarm = {mine, 1u << 31, 65536};
  printf("autodisarm %d\n", sigaltstack(&disarm, NULL));
  on_signal(SIGUSR1, handler, SA_ONSTACK | SA_NODEFER), raise(SIGUSR2);
}
C
same "$T/altstack"
