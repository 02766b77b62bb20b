# spec 1, B2: default actions: the exit status when a signal ends the program, itself or a child.
. "$(dirname "$0")/lib.sh"
compile die.c <<'C'
#include "posix.h"
int main(int argc, char **argv) {
  int number = atoi(argv[1]);
  if (argc > 2) for (int n = 1; n < 65; n++) {
    if (n == SIGSTOP || n == SIGTSTP || n == SIGTTIN || n == SIGTTOU || n == 32 || n == 33) continue;
    pid_t child = fork();
    if (!child) { raise(n); _exit(n); }
    int status; waitpid(child, &status, 0);
    printf("%d ", n), print_status(strsignal(n), status);
  }
  printf("buffered and lost\n"), dprintf(2, "dying\n");
  if (number == SIGSEGV) *(volatile int *)8 = 1;
  if (number == SIGILL) __builtin_trap();
  if (number == SIGFPE) { volatile int zero = 0, one = 1; return one / zero; }
  if (number == SIGTRAP) asm volatile("int3");
  if (number == SIGABRT) abort();
  raise(number);
}
C
for number in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 24 25 26 27 29 30 31 34 50 64; do STATUS=$((128 + number)) same "$T/die" $number; done
STATUS=143 same "$T/die" 15 all
