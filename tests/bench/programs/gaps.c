// gaps DEPTH SECONDS: reads the time stamp counter all the time, DEPTH calls deep: how long do interruptions take? The median, in
// microseconds, of those of more than one. It is the same on a machine that is busy with other things, where times of whole programs are not.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <x86intrin.h>

enum { most = 1 << 20 };
static uint64_t gaps[most];
static long count;
static double ticks;  // of a microsecond

static int compare(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

__attribute__((noipa)) static void spin(double seconds) {
  uint64_t last = __rdtsc(), end = last + (uint64_t)(seconds * ticks * 1e6);
  while (last < end) {
    uint64_t now = __rdtsc();
    if (now - last > ticks && count < most) gaps[count++] = now - last;
    last = now;
  }
}

__attribute__((noipa)) static void descend(int depth, double seconds) {
  if (depth) descend(depth - 1, seconds);
  else spin(seconds);
  __asm__ volatile("");
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

int main(int argc, char **argv) {
  double begin = now();
  uint64_t at = __rdtsc();
  while (now() - begin < 20e3) {}
  ticks = (double)(__rdtsc() - at) / (now() - begin);
  descend(atoi(argv[1]), atof(argv[2]));
  qsort(gaps, count, sizeof gaps[0], compare);
  printf("%f\n", count ? gaps[count / 2] / ticks : 0);
}
