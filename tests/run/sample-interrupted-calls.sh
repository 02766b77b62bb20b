# A signal without SA_RESTART ends a call that waits, and one with it does not, whether a sample is due at the same time or not.
. "$(dirname "$0")/lib.sh"
compile calls.c -pthread <<'S'
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/msg.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static int ends[2], tid, handled;
static pid_t child;
static volatile int waits, is_back;
static void handler(int sig) { handled++; }
static int is_asleep(void) {  // in the kernel, and no more on its way there
  char path[64], text[256] = "";
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
  FILE* f = fopen(path, "r");
  if (f) fgets(text, sizeof text, f), fclose(f);
  char* end = strrchr(text, ')');
  return end && end[2] == 'S';
}
// Interrupts the call once it waits. One that goes on gets what it waits for, much later.
static void* interrupt(void* argument) {
  for (;;) {
    while (!waits) usleep(50);
    while (!is_asleep() && waits) usleep(50);
    int sig = waits;
    is_back = 0, waits = 0;
    syscall(SYS_tgkill, getpid(), tid, sig);
    for (int i = 0; i < 400 && !is_back; i++) usleep(500);
    if (!is_back) write(ends[1], "", 1);
    while (!is_back) usleep(50);
  }
}
static long call(int which) {
  char byte;
  struct pollfd p = {ends[0], POLLIN};
  struct timespec second = {1, 0};
  static int word;
  switch (which) {
    case 0: return read(ends[0], &byte, 1);
    case 1: return poll(&p, 1, -1) == 1 ? read(ends[0], &byte, 1) : -1;
    case 2: return waitpid(child, 0, 0);
    case 3: return nanosleep(&second, 0);
    case 4: return syscall(SYS_futex, &word, FUTEX_WAIT, 0, 0, 0, 0);
  }
  return 0;
}
int main(int argc, char** argv) {
  pipe(ends);
  tid = gettid();
  struct sigaction a = {.sa_handler = handler}, b = {.sa_handler = handler, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &a, 0), sigaction(SIGUSR2, &b, 0), sigaction(SIGRTMIN + 3, &a, 0);
  if (!(child = fork())) { alarm(100); pause(); _exit(0); }
  pthread_t t;
  pthread_create(&t, 0, interrupt, 0);
  const char* names[] = {"read", "poll", "waitpid", "nanosleep", "futex"};
  const int signals[] = {SIGUSR1, SIGRTMIN + 3, SIGUSR2};
  for (int which = 0; which < 5; which++)
    for (int s = 0; s < 3; s++) {
      int ended = 0, times = s == 2 ? 2 : atoi(argv[1]);
      if (s == 2 && (which == 2 || which == 4)) continue;  // they would wait for ever
      for (int i = 0; i < times; i++) {
        waits = signals[s];
        long r = call(which);
        ended += r == -1 && errno == EINTR;
        is_back = 1;
        while (waits) usleep(50);
        usleep(100);
      }
      printf("%s, signal %d: %d of %d ended\n", names[which], s, ended, times);
    }
  kill(child, 9);
  printf("%s\n", handled > 10 ? "all handled" : "not handled");
  return 0;
}
S
OPTIONS='--clock=wall' sampled "$T/calls" 20
sampled "$T/calls" 60
OPTIONS='--source=timer' sampled "$T/calls" 5
