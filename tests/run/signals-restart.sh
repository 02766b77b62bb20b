# SA_RESTART against EINTR: read, write, wait, accept, futex, poll, select, nanosleep.
. "$(dirname "$0")/lib.sh"
compile restart.c -pthread <<'C'
#include "posix.h"
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
static int fds[2], listener, epoll; static volatile int ticks, wanted; static pid_t child; static sem_t semaphore;
static void tick(int number, siginfo_t *info, void *context) {
  ticks++;
  if (ticks == wanted) { write(fds[1], "x", 1); sem_post(&semaphore); if (child > 0) kill(child, SIGKILL); }
}
static void report(const char *what, long result) { int error = errno; printf("%s: %s\n", what, result < 0 ? strerrorname_np(error) : result > 0 ? "positive" : "0"); }
static void start(int flags) { ticks = 0; on_signal(SIGALRM, tick, flags); struct itimerval often = {{0, 3000}, {0, 3000}}; setitimer(ITIMER_REAL, &often, NULL); }
static void stop(void) { struct itimerval never = {}; setitimer(ITIMER_REAL, &never, NULL); }
int main() {
  char c; int status; pipe(fds), sem_init(&semaphore, 0, 0); epoll = epoll_create1(0);
  for (int flags = 0; flags <= SA_RESTART; flags += SA_RESTART) {
    printf("%s\n", flags ? "SA_RESTART" : "no flags");
    wanted = flags ? 5 : 0;
#define TRY(what) start(flags); report(#what, what); stop(); if (flags) CHECK(ticks >= 5)
    TRY(read(fds[0], &c, 1));
    if (flags) { sem_wait(&semaphore); }
    TRY(sem_wait(&semaphore));
    if (flags) read(fds[0], &c, 1);
    if ((child = fork()) == 0) for (;;) pause();
    TRY(waitpid(child, &status, 0));
    if (flags) read(fds[0], &c, 1), sem_wait(&semaphore); else kill(child, SIGKILL), wait(NULL);
    child = 0, wanted = 0;
    struct timespec hour = {3600, 0}, left = {}; fd_set set; struct pollfd p = {fds[0], POLLIN}; struct epoll_event event;
#undef TRY
#define TRY(what) start(flags); report(#what, what); stop()
    TRY(nanosleep(&hour, &left)); printf("left %d\n", left.tv_sec >= 3500 && left.tv_sec < 3600);
    start(flags), errno = clock_nanosleep(CLOCK_MONOTONIC, 0, &hour, &left), stop(), report("clock_nanosleep", -1);
    TRY(poll(&p, 1, -1)); TRY(poll(&p, 1, 1000000)); TRY(epoll_wait(epoll, &event, 1, -1)); TRY(pause());
    FD_ZERO(&set); FD_SET(fds[0], &set); TRY(select(fds[0] + 1, &set, NULL, NULL, NULL));
    TRY(usleep(100000000));
    start(flags), printf("sleep left %d\n", sleep(1000) > 900), stop();
  }
}
C
same "$T/restart"
