// The system headers that the programs of tests/run use, so that each heredoc begins with its point.
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

// A program that checks itself ends here: the line tells where, the status is not one of a signal's.
#define CHECK(condition) ((condition) ? (void)0 : (dprintf(2, "line %d: not so: %s\n", __LINE__, #condition), _exit(99)))

static inline void on_signal(int number, void (*handler)(int, siginfo_t*, void*), int flags) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | flags;
  CHECK(sigaction(number, &action, NULL) == 0);
}

// One word of a checksum: depends on every word before it.
static inline uint64_t mix(uint64_t sum, uint64_t word) { return (sum ^ word) * 0x9e3779b97f4a7c15u + (sum >> 29); }

// Computes until the calling thread has used so much of a processor: on a fast machine as long as on a slow one.
static inline double cpu_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}
static inline void compute(double seconds) {
  for (double end = cpu_seconds() + seconds; cpu_seconds() < end;)
    for (volatile long n = 0; n < 1000000;) n++;
}

static inline void print_status(const char* what, int status) {
  if (WIFEXITED(status)) printf("%s: exit %d\n", what, WEXITSTATUS(status));
  else if (WIFSIGNALED(status)) printf("%s: signal %d\n", what, WTERMSIG(status));
  else if (WIFSTOPPED(status)) printf("%s: stopped %d\n", what, WSTOPSIG(status));
  else if (WIFCONTINUED(status)) printf("%s: continued\n", what);
  fflush(stdout);
}
