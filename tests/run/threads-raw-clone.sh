# Clone by hand: threads and processes that share memory, without libpthread.
. "$(dirname "$0")/lib.sh"
compile clone.c <<'C'
#include "posix.h"
static char stacks[4][65536] __attribute__((aligned(16))); static volatile int counter; static int tid_word;
static int body(void *argument) { for (int i = 0; i < 10000; i++) __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED); return (int)(long)argument; }
static int raw(void *stack) {        // a bare thread: shares everything, ends by exit, clears tid_word
  long result; int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
  register long r10 asm("r10") = (long)&tid_word;
  asm volatile("syscall; test %%eax, %%eax; jnz 1f; mov $1000, %%ecx; 2: lock incl %3; dec %%ecx; jnz 2b; mov $60, %%eax; xor %%edi, %%edi; syscall; 1:"
               : "=a"(result) : "a"(SYS_clone), "D"(flags), "m"(counter), "S"(stack), "d"(&tid_word), "r"(r10) : "rcx", "r11", "memory");
  return result;
}
int main() {
  int status; pid_t children[4];
  for (long i = 0; i < 4; i++) children[i] = clone(body, stacks[i] + 65536, CLONE_VM | CLONE_FILES | CLONE_FS | SIGCHLD, (void *)(i + 40));
  for (int i = 0; i < 4; i++) waitpid(children[i], &status, 0), print_status("shares memory", status);
  printf("%d\n", counter);
  for (int i = 0; i < 50; i++) {
    tid_word = -1;
    CHECK(raw(stacks[i % 4] + 65536) > 0);
    for (int value; (value = __atomic_load_n(&tid_word, __ATOMIC_SEQ_CST)) != 0;) syscall(SYS_futex, &tid_word, 0, value, NULL);
  }
  printf("%d\n", counter);
  pid_t child = syscall(SYS_clone, SIGUSR1 * 0 + SIGCHLD, 0, 0, 0, 0);
  if (child == 0) { counter = 1; _exit(3); }
  waitpid(child, &status, 0), print_status("like fork", status), printf("%d\n", counter);
  child = clone(body, stacks[0] + 65536, SIGCHLD, (void *)9), waitpid(child, &status, 0), print_status("own memory", status), printf("%d\n", counter);
}
C
same "$T/clone"
