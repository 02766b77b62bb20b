# A signal that only the mask of the call lets in (sigsuspend, ppoll, pselect, epoll_pwait) is handled before the call comes back, though a sample is
# due then; with the masks that the kernel gives it, and what its sender has said.
. "$(dirname "$0")/lib.sh"
compile masks.c <<'S'
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>
static int tell[2];
static volatile int handled, value, inside, saved;
static void handler(int sig, siginfo_t* info, void* context) {
  sigset_t now;
  sigprocmask(SIG_BLOCK, 0, &now);
  handled++, value = info->si_value.sival_int;
  inside = sigismember(&now, sig) * 4 + sigismember(&now, SIGUSR2) * 2 + sigismember(&now, SIGHUP);
  saved = sigismember(&((ucontext_t*)context)->uc_sigmask, sig);
}
static char state_of(pid_t pid) {
  char path[64], text[256] = "";
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  FILE* f = fopen(path, "r");
  if (f) fgets(text, sizeof text, f), fclose(f);
  char* end = strrchr(text, ')');
  return end ? end[2] : 0;
}
int main(void) {
  struct sigaction a = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
  sigaddset(&a.sa_mask, SIGUSR2);
  sigaction(SIGUSR1, &a, 0), sigaction(SIGRTMIN + 1, &a, 0);
  sigset_t all, some;
  sigfillset(&all), sigdelset(&all, SIGTRAP);
  sigprocmask(SIG_SETMASK, &all, 0);
  some = all, sigdelset(&some, SIGUSR1), sigdelset(&some, SIGRTMIN + 1), sigdelset(&some, SIGUSR2);
  pipe(tell);
  pid_t parent = getpid();
  if (!fork()) {
    close(tell[1]);
    char sig;
    for (int number = 1; read(tell[0], &sig, 1) == 1; number++) {
      while (state_of(parent) != 'S') usleep(100);
      sigqueue(parent, sig, (union sigval){.sival_int = number});
    }
    _exit(0);
  }
  const char* names[] = {"sigsuspend", "ppoll", "pselect", "epoll_pwait"};
  int e = epoll_create1(0);
  struct epoll_event event;
  for (int which = 0; which < 4; which++)
    for (int i = 0; i < 6; i++) {
      char sig = i % 2 ? SIGUSR1 : SIGRTMIN + 1;
      handled = value = 0;
      write(tell[1], &sig, 1);
      int r = which == 0 ? sigsuspend(&some) : which == 1 ? ppoll(0, 0, 0, &some)
            : which == 2 ? pselect(0, 0, 0, 0, 0, &some) : epoll_pwait(e, &event, 1, -1, &some);
      printf("%s %d %s: handled %d, value %d, blocked %d, before %d\n", names[which], r, strerror(errno), handled, value, inside, saved);
    }
  close(tell[1]);
  wait(0);
  return 0;
}
S
OPTIONS='--clock=wall' sampled "$T/masks"
sampled "$T/masks"
