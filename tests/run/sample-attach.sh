# Threads in poll, epoll, nanosleep, read, futex, sigtimedwait and recv: attached to twenty times, no call ends early, and all is as before.
. "$(dirname "$0")/lib.sh"
compile waits.c -pthread <<'C'
#include "posix.h"
#include <sys/epoll.h>
#include <sys/socket.h>
static int pipes[2]; static volatile int stop; static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER; static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static volatile long n;
static void *polls(void *p) { struct pollfd f = {pipes[0], POLLIN}; CHECK(poll(&f, 1, -1) == 1); return NULL; }
static void *epolls(void *p) { struct epoll_event e = {EPOLLIN}; int fd = epoll_create1(0); epoll_ctl(fd, EPOLL_CTL_ADD, pipes[0], &e); CHECK(epoll_wait(fd, &e, 1, -1) == 1); return NULL; }
static void *selects(void *p) { fd_set s; FD_ZERO(&s); FD_SET(pipes[0], &s); CHECK(select(pipes[0] + 1, &s, NULL, NULL, NULL) == 1); return NULL; }
static void *sleeps(void *p) { struct timespec t = {0, 30000000}; while (!stop) CHECK(nanosleep(&t, NULL) == 0); return NULL; }
static void *reads(void *p) { char c; CHECK(read(pipes[0], &c, 1) == 0); return NULL; }
static void *locks(void *p) { CHECK(pthread_mutex_lock(&held) == 0); pthread_mutex_unlock(&held); return NULL; }
static void *signals(void *p) { sigset_t s; sigemptyset(&s); sigaddset(&s, SIGUSR1); struct timespec t = {0, 50000000}; while (!stop) CHECK(sigtimedwait(&s, NULL, &t) == -1 && errno == EAGAIN); return NULL; }
static void *receives(void *p) { int peer = *(int *)p; char c; CHECK(recv(peer, &c, 1, 0) == 1 && c == 'x'); return NULL; }
static void *computes(void *p) { while (!stop) n++; return NULL; }
int main() {
  int sockets[2]; pthread_t t[9]; char c;
  sigset_t s; sigemptyset(&s); sigaddset(&s, SIGUSR1); pthread_sigmask(SIG_BLOCK, &s, NULL);
  pipe(pipes), socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), pthread_mutex_lock(&held);
  void *(*work[])(void *) = {polls, epolls, selects, sleeps, reads, locks, signals, receives, computes};
  for (int i = 0; i < 9; i++) CHECK(pthread_create(&t[i], NULL, work[i], &sockets[0]) == 0);
  usleep(200000), puts("ready"), fflush(stdout);
  CHECK(read(0, &c, 1) == 0);
  stop = 1, write(sockets[1], "x", 1), close(pipes[1]), pthread_mutex_unlock(&held);
  for (int i = 0; i < 9; i++) pthread_join(t[i], NULL);
  puts("right");
}
C
attach() { timeout -k 5 $LIMIT "$WEIR" sample -q -F 2000 $options --pid $P --seconds "$1" -o "$T/run.weir" 2>"$T/err" || fail "$options: status $?: $(<"$T/err")"; }
is_seen() { attach 0.5; (seen computes) 2>/dev/null; }  # (a busy machine may not let it run for a while)
for options in --clock=cpu --clock=wall --source=timer; do
  start "$T/waits"
  state >"$T/before"
  for round in {1..20}; do
    attach 0.05
    kill -0 $P || fail "$options, round $round: it has died"
    state >"$T/after"
    diff "$T/before" "$T/after" || fail "$options, round $round: something is left"
  done
  wait_for is_seen || seen computes
  finish
  [[ $(<"$T/started.status") == 0 && $(tail -n 1 "$T/started.out") == right ]] || fail "$options: it ended so: $(<"$T/started.status") $(<"$T/started.out")"
done
