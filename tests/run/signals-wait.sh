# Sigwaitinfo, sigtimedwait, sigwait and signalfd, with poll and epoll, in threads.
. "$(dirname "$0")/lib.sh"
compile wait.c -pthread <<'C'
#include "posix.h"
#include <sys/epoll.h>
#include <sys/signalfd.h>
static sigset_t set;
static void *waiter(void *argument) { long sum = 0; for (int i = 0; i < 100; i++) { siginfo_t info; sigwaitinfo(&set, &info); sum += info.si_value.sival_int; } return (void *)sum; }
int main() {
  siginfo_t info; int number; struct timespec zero = {};
  sigemptyset(&set); for (int n = SIGRTMIN; n < SIGRTMIN + 5; n++) sigaddset(&set, n); sigaddset(&set, SIGCHLD), sigaddset(&set, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, NULL);
  for (int i = 4; i >= 0; i--) sigqueue(getpid(), SIGRTMIN + i, (union sigval){.sival_int = i * 10});
  for (int i = 0; i < 5; i++) { number = sigwaitinfo(&set, &info); printf("waited for RTMIN+%d, %d\n", number - SIGRTMIN, info.si_value.sival_int); }
  CHECK(sigtimedwait(&set, &info, &zero) == -1 && errno == EAGAIN);
  raise(SIGUSR1), CHECK(sigwait(&set, &number) == 0), printf("%d\n", number);
  if (fork() == 0) _exit(9);
  number = sigwaitinfo(&set, &info), printf("child: %d %d %d\n", number, info.si_code == CLD_EXITED, info.si_status), wait(NULL);
  int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), epoll = epoll_create1(0); struct signalfd_siginfo got;
  struct epoll_event event = {EPOLLIN}; epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
  CHECK(read(fd, &got, sizeof got) == -1 && errno == EAGAIN && epoll_wait(epoll, &event, 1, 0) == 0);
  raise(SIGUSR1), sigqueue(getpid(), SIGRTMIN + 2, (union sigval){.sival_int = 5});
  struct pollfd poll_fd = {fd, POLLIN}; printf("poll %d, epoll %d\n", poll(&poll_fd, 1, -1), epoll_wait(epoll, &event, 1, -1));
  while (read(fd, &got, sizeof got) == sizeof got) printf("signalfd %d %d from me %d\n", got.ssi_signo, got.ssi_int, got.ssi_pid == getpid());
  pthread_t thread; void *sum; pthread_create(&thread, NULL, waiter, NULL);
  for (int i = 0; i < 100; i++) while (sigqueue(getpid(), SIGRTMIN + i % 5, (union sigval){.sival_int = i}) < 0) usleep(1000);
  pthread_join(thread, &sum), printf("%ld\n", (long)sum);
}
C
same "$T/wait"
