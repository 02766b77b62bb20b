// A program that does many things at once until its stdin ends, and checks that each is right: it prints how often it was not.
//   busy WHAT: c compute, p semaphores, s sleep, r pipe, v vDSO, t threads that come and go, h timers with handlers, k fork
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static volatile int stop;
static volatile long ticks;
static long rounds[16], wrong[16];
static unsigned long mixed(unsigned long x, int n) { for (int i = 0; i < n; i++) x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9UL + i; return x; }
__attribute__((noinline)) static unsigned long deep(unsigned long x, int n) { return n ? deep(mixed(x, 3), n - 1) + x : x; }
static void on_tick(int s) { long n = ticks; unsigned long a = mixed(n, 50), b = mixed(n, 50); wrong[8] += a != b; ticks++; }
static void *compute(void *p) {
  long me = (long)p; unsigned long expected = deep(me, 300);
  double d = 0; for (int i = 1; i < 1000; i++) d += 1.0 / i;
  while (!stop) { wrong[me] += deep(me, 300) != expected; double e = 0; for (int i = 1; i < 1000; i++) e += 1.0 / i; wrong[me] += e != d; rounds[me]++; }
  return 0;
}
static sem_t ping, pong;
static void *ponger(void *p) { while (!stop) { sem_wait(&ping); sem_post(&pong); rounds[2]++; } sem_post(&pong); return 0; }
static void *pinger(void *p) { while (!stop) { sem_post(&ping); sem_wait(&pong); } sem_post(&ping); return 0; }
static void *sleeper(void *p) {
  while (!stop) {
    struct timespec t = {0, 3000000}, left, a, b; clock_gettime(CLOCK_MONOTONIC, &a);
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &left) == EINTR) t = left;
    clock_gettime(CLOCK_MONOTONIC, &b);
    wrong[3] += (b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec < 3000000; rounds[3]++;
  }
  return 0;
}
static int pipes[2];
static void *reader(void *p) { unsigned char c, want = 0; while (read(pipes[0], &c, 1) == 1) { wrong[4] += c != want++; rounds[4]++; } return 0; }
static void *writer(void *p) { unsigned char c = 0; while (!stop) { if (write(pipes[1], &c, 1) == 1) c++; if (c % 16 == 0) usleep(500); } close(pipes[1]); return 0; }
static void *clocks(void *p) {
  struct timespec last = {0};
  while (!stop) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); wrong[5] += t.tv_sec < last.tv_sec || (t.tv_sec == last.tv_sec && t.tv_nsec < last.tv_nsec); last = t; rounds[5]++; }
  return 0;
}
static void *brief(void *p) { return (void *)mixed((long)p, 20); }
static void *churn(void *p) {
  while (!stop) { pthread_t t[4]; for (long i = 0; i < 4; i++) if (pthread_create(&t[i], 0, brief, (void *)i)) wrong[6]++, t[i] = 0;
    for (long i = 0; i < 4; i++) { void *r; if (t[i]) pthread_join(t[i], &r), wrong[6] += r != (void *)mixed(i, 20); } rounds[6]++; }
  return 0;
}
static void *forker(void *p) {
  while (!stop) { pid_t c = fork(); if (c == 0) _exit(mixed(5, 1000) & 63); int st; while (waitpid(c, &st, 0) < 0 && errno == EINTR) {} wrong[7] += !WIFEXITED(st) || WEXITSTATUS(st) != (int)(mixed(5, 1000) & 63); rounds[7]++; usleep(2000); }
  return 0;
}
int main(int argc, char **argv) {
  pthread_t t[16]; int n = 0; char c; const char *what = argc > 1 ? argv[1] : "cpsrvthk";
  sem_init(&ping, 0, 0), sem_init(&pong, 0, 0); pipe(pipes);
  struct sigaction a = {.sa_handler = on_tick, .sa_flags = SA_RESTART}; sigemptyset(&a.sa_mask); sigaction(SIGALRM, &a, 0); sigaction(SIGPROF, &a, 0);
  signal(SIGTRAP, SIG_IGN); signal(SIGUSR2, SIG_IGN);
  if (strchr(what, 'h')) { struct itimerval i = {{0, 1000}, {0, 1000}}; setitimer(ITIMER_REAL, &i, 0); setitimer(ITIMER_PROF, &i, 0); }
  for (long i = 0; i < 2; i++) if (strchr(what, 'c')) pthread_create(&t[n++], 0, compute, (void *)i);
  if (strchr(what, 'p')) pthread_create(&t[n++], 0, ponger, 0), pthread_create(&t[n++], 0, pinger, 0);
  if (strchr(what, 's')) pthread_create(&t[n++], 0, sleeper, 0);
  if (strchr(what, 'r')) pthread_create(&t[n++], 0, reader, 0), pthread_create(&t[n++], 0, writer, 0);
  if (strchr(what, 'v')) pthread_create(&t[n++], 0, clocks, 0);
  if (strchr(what, 't')) pthread_create(&t[n++], 0, churn, 0);
  if (strchr(what, 'k')) pthread_create(&t[n++], 0, forker, 0);
  puts("ready"), fflush(stdout);
  while (read(0, &c, 1) != 0) {}
  stop = 1;
  for (int i = 0; i < n; i++) pthread_join(t[i], 0);
  long bad = 0; for (int i = 0; i < 16; i++) bad += wrong[i];
  printf("wrong %ld\n", bad);
  return bad != 0;
}
