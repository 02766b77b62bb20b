# Programs that execute others, or set the signal's action, in unusual ways: the number of the call is not known before, or not beside it.
. "$(dirname "$0")/lib.sh"
compile hidden.c <<'C'
#include "posix.h"
#include <sys/syscall.h>
static volatile long execve_number = SYS_execve, action_number = SYS_rt_sigaction, n;
int main(int argc, char **argv) {
  int left = atoi(argv[1]);
  char number[16], *next[] = {argv[0], number, NULL}, *none[] = {NULL};
  for (int i = 0; i < 3000000; i++) n++;
  if (!left) { puts("end"); return 7; }
  sprintf(number, "%d", left - 1);
  if (left % 2) syscall(execve_number, argv[0], next, none);
  long result = SYS_execve;  // the compiler puts it into rax early
  register char **arguments asm("rsi") = next, **environment asm("rdx") = none;
  asm volatile("xor %%r8, %%r8\n nop\n nop\n syscall" : "+a"(result) : "D"(argv[0]), "r"(arguments), "r"(environment) : "rcx", "r8", "r11", "memory");
  return 1;
}
C
for i in 1 2 3; do STATUS=7 RATE=20000 sampled "$T/hidden" 30; done
compile action.c <<'C'
#include "posix.h"
#include <sys/syscall.h>
static volatile long number = SYS_rt_sigaction, n;
int main() {
  struct { void *handler; unsigned long flags; void *restorer; unsigned long mask; } by_default = {0};
  for (int i = 0; i < 50000000; i++) n++;
  syscall(number, SIGTRAP, &by_default, NULL, 8);
  for (int i = 0; i < 50000000; i++) n++;
  puts("right");
}
C
RATE=20000 sampled "$T/action"
report summary | grep 'note .*execve' && fail 'guards are not whole'
compile leader.c -pthread <<'C'
#include "posix.h"
static volatile long n;
static void *spin(void *p) { for (long i = 0; i < 400000000; i++) n++; puts("right"), exit(5); }
int main() { pthread_t t; pthread_create(&t, NULL, spin, NULL), pthread_exit(NULL); }
C
for source in perf timer; do
  STATUS=5 RATE=1000 OPTIONS=--source=$source sampled "$T/leader"  # (its first thread ends at once)
  seen spin
  (($(ask 'SELECT truncated FROM sampling') == 0)) || fail "cut off: $(ask 'SELECT * FROM sampling')"
done
