# Threads that block all signals are sampled; those that wait for signals get theirs.
. "$(dirname "$0")/lib.sh"
compile masks.c -pthread <<'C'
#include "posix.h"
#include <sys/signalfd.h>
static volatile int waiter_ready; static volatile long sum;
// (Weir looks for blocked signals some 20 times a second.)
__attribute__((noipa)) static void hidden(void) { compute(0.5); sum++; }
static void *blocks_all(void *p) {
  sigset_t all; sigfillset(&all); pthread_sigmask(SIG_BLOCK, &all, NULL);
  hidden(); return NULL;
}
static void *waits(void *p) {
  sigset_t some; sigemptyset(&some); sigaddset(&some, SIGUSR1); sigaddset(&some, SIGTERM);
  long got = 0; int number;
  for (waiter_ready = 1; number != SIGTERM; got++) CHECK(sigwait(&some, &number) == 0);
  return (void *)got;
}
int main() {
  sigset_t some; sigemptyset(&some); sigaddset(&some, SIGUSR1); sigaddset(&some, SIGTERM); sigaddset(&some, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &some, NULL);
  pthread_t a, b; void *got; struct signalfd_siginfo info;
  pthread_create(&a, NULL, blocks_all, NULL), pthread_create(&b, NULL, waits, NULL);
  int fd = signalfd(-1, &some, 0);
  pthread_kill(pthread_self(), SIGUSR2), CHECK(read(fd, &info, sizeof info) == sizeof info && info.ssi_signo == SIGUSR2);
  while (!waiter_ready) usleep(1000);
  for (int i = 0; i < 20; i++) pthread_kill(b, SIGUSR1), usleep(1000);
  pthread_kill(b, SIGTERM), pthread_join(b, &got), pthread_join(a, NULL);
  CHECK((long)got >= 2);
  puts("right");
}
C
RATE=2000 sampled "$T/masks"
seen hidden blocks_all
