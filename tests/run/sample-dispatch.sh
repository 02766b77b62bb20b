# Syscall user dispatch: the calls of Weir's handler, and its way back, are not dispatched; the program's are, also while it is sampled.
. "$(dirname "$0")/lib.sh"
compile dispatch.c <<'S'
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#define PR_SET_SYSCALL_USER_DISPATCH 59
static volatile char selector;
static volatile int hits, number;
static void handler(int sig, siginfo_t* info, void* context) {
  selector = 0, hits++, number = info->si_syscall;
  ((ucontext_t*)context)->uc_mcontext.gregs[REG_RAX] = 4242;
}
int main(int argc, char** argv) {
  struct sigaction a = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
  sigaction(SIGSYS, &a, 0);
  unsigned long begin = atol(argv[1]) ? 0x10000 : 0, size = atol(argv[1]);
  if (prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, begin, size, &selector)) return puts("the kernel has it not"), 0;
  int dispatched = 0;
  volatile double x = 1;
  for (int i = 0; i < 300; i++) {
    selector = 1;
    for (int k = 0; k < 200000; k++) x *= 1.00001;
    if (!selector) return puts("the selector has changed"), 1;
    dispatched += syscall(SYS_getppid) == 4242;
    selector = 0;
    dispatched += syscall(SYS_getppid) == getppid();
  }
  if (prctl(PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0, 0)) return 1;
  selector = 1;
  printf("%d dispatched or not, %d hits, number %d, %d\n", dispatched, hits, number, syscall(SYS_getppid) == getppid());
}
S
for range in 0 4096; do
  sampled "$T/dispatch" $range
  RATE=1000 sampled "$T/dispatch" $range
done
