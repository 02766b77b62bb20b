# Calls of threads that block all signals, our own among them, do not end with EINTR; nor later than they would.
. "$(dirname "$0")/lib.sh"
compile waits.c -pthread <<'C'
#include "posix.h"
#include <sys/epoll.h>
static volatile long n;
static void *waits(void *p) {
  sigset_t all; sigfillset(&all); pthread_sigmask(SIG_BLOCK, &all, NULL);
  struct epoll_event event; int e = epoll_create1(0);
  for (int i = 0; i < 10; i++) {
    for (int k = 0; k < 3000000; k++) n++;
    CHECK(epoll_wait(e, &event, 1, 60) == 0);
  }
  return NULL;
}
int main() {
  pthread_t t[4];
  for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, waits, NULL);
  for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
  puts("right");
}
C
RATE=5000 sampled "$T/waits"
