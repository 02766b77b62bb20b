# A call with a limit of time that a stop has interrupted goes on as it would natively, with what is left of its time, though a sample is due then;
# a handler of the program's ends it.
. "$(dirname "$0")/lib.sh"
compile stopped.c -pthread <<'S'
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static int tell[2];
static void handler(int sig) { (void)sig; }
static char state_of(pid_t pid) {
  char path[64], text[256] = "";
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  FILE* f = fopen(path, "r");
  if (f) fgets(text, sizeof text, f), fclose(f);
  char* end = strrchr(text, ')');
  return end ? end[2] : 0;
}
// Stops and continues its parent whenever that is asleep, five times for each byte; then sends it what the byte says.
static void interrupt(pid_t parent) {
  char sig;
  while (read(tell[0], &sig, 1) == 1) {
    for (int i = 0; i < 5; i++) {
      while (state_of(parent) != 'S') usleep(100);
      kill(parent, SIGSTOP);
      while (state_of(parent) != 'T') usleep(100);
      usleep(2000);
      kill(parent, SIGCONT);
      while (state_of(parent) == 'T') usleep(100);
      usleep(5000);
    }
    if (sig) kill(parent, sig);
  }
  _exit(0);
}
static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}
static const char* const names[] = {"poll", "nanosleep", "clock_nanosleep", "a condition", "all registers"};
// All but rax, rcx and r11 are as they were.
static int poll_with_registers(int milliseconds) {
  static unsigned char before[8 * 16 + 8 * 6], after[sizeof before];
  unsigned control = 0x1fc0, control_then = 0, usual = 0x1f80;  // denormals are zero
  for (unsigned i = 0; i < sizeof before; i++) before[i] = (unsigned char)(i * 37 + 11);
  long result;
  __asm__ volatile(
      "ldmxcsr %[control]\n\tfld1\n\t"
      "movups (%[b]), %%xmm0; movups 16(%[b]), %%xmm1; movups 32(%[b]), %%xmm6; movups 48(%[b]), %%xmm7\n\t"
      "movups 64(%[b]), %%xmm8; movups 80(%[b]), %%xmm9; movups 96(%[b]), %%xmm14; movups 112(%[b]), %%xmm15\n\t"
      "movq 128(%[b]), %%r8; movq 136(%[b]), %%r9; movq 144(%[b]), %%r10; movq 152(%[b]), %%r13; movq 160(%[b]), %%r14; movq 168(%[b]), %%r15\n\t"
      "movl $7, %%eax\n\tsyscall\n\t"
      "movups %%xmm0, (%[a]); movups %%xmm1, 16(%[a]); movups %%xmm6, 32(%[a]); movups %%xmm7, 48(%[a])\n\t"
      "movups %%xmm8, 64(%[a]); movups %%xmm9, 80(%[a]); movups %%xmm14, 96(%[a]); movups %%xmm15, 112(%[a])\n\t"
      "movq %%r8, 128(%[a]); movq %%r9, 136(%[a]); movq %%r10, 144(%[a]); movq %%r13, 152(%[a]); movq %%r14, 160(%[a]); movq %%r15, 168(%[a])\n\t"
      "stmxcsr %[then]\n\tldmxcsr %[usual]\n\tfstp %%st(0)\n\t"
      : "=&a"(result), [then] "=m"(control_then)
      : [a] "b"(after), [b] "r"((void*)before), [control] "m"(control), [usual] "m"(usual), "D"(0), "S"(0), "d"((long)milliseconds)
      : "rcx", "r8", "r9", "r10", "r11", "r13", "r14", "r15", "xmm0", "xmm1", "xmm6", "xmm7", "xmm8", "xmm9", "xmm14", "xmm15", "memory", "st");
  if (memcmp(before, after, sizeof before) || control_then != control) puts("registers are lost");
  return result ? (int)-result : 0;
}
static int call(int which, double limit) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  struct timespec t = {(time_t)limit, (long)((limit - (time_t)limit) * 1e9)}, rest, end;
  switch (which) {
    case 0: return poll(0, 0, (int)(limit * 1000)) ? errno : 0;
    case 1: return nanosleep(&t, &rest) ? errno : 0;
    case 2: return clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &rest);
    case 4: return poll_with_registers((int)(limit * 1000));
  }
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_nsec += t.tv_nsec, end.tv_sec += t.tv_sec + end.tv_nsec / 1000000000, end.tv_nsec %= 1000000000;
  pthread_mutex_lock(&mutex);
  int result = pthread_cond_timedwait(&condition, &mutex, &end);
  pthread_mutex_unlock(&mutex);
  return result == ETIMEDOUT ? 0 : result;
}
int main(void) {
  struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &a, 0);
  pipe(tell);
  pid_t parent = getpid(), child = fork();
  if (!child) close(tell[1]), interrupt(parent);
  for (int which = 0; which < 5; which++)
    for (int ends = 0; ends < 2; ends++) {
      if (ends && which == 3) continue;  // (the C library waits again)
      double limit = ends ? 1000 : 0.25, begin = seconds();
      char sig = ends ? SIGUSR1 : 0;
      write(tell[1], &sig, 1);
      int result = call(which, limit);
      double took = seconds() - begin;
      int is_too_early = !ends && took < limit;
      printf("%s: %s%s\n", names[which], result ? strerror(result) : "goes on", is_too_early ? ", too early" : "");
    }
  close(tell[1]);
  while (wait(0) < 0) {}
  return 0;
}
S
OPTIONS='--clock=wall' sampled "$T/stopped"
OPTIONS='--clock=wall --source=timer' sampled "$T/stopped"
sampled "$T/stopped"
