# Asynchronous signals at a high rate, inside malloc, printf, qsort, memcpy and friends.
. "$(dirname "$0")/lib.sh"
compile rate.c -lm <<'C'
#include "posix.h"
#include <math.h>
static volatile int signals;
static void tick(int number, siginfo_t *info, void *context) { volatile char room[300]; memset((void *)room, signals, sizeof room); signals++; }
static int compare(const void *a, const void *b) { return *(int *)a - *(int *)b; }
static uint64_t work(void) {
  static char text[5000], copy[5000]; uint64_t sum = 0; int n = 0, numbers[200];
  for (int i = 0; i < 30; i++) n += snprintf(text + n, 100, "%d %s %.9g|", i * i, "word", sqrt(i) * exp(i / 9.0));
  for (int i = 0; i < 40; i++) { size_t size = i * 97 + 1; char *p = malloc(size); memset(p, i, size); sum = mix(sum, p[size - 1]); p = realloc(p, size * 3); free(p); }
  memcpy(copy, text, sizeof text), memmove(copy + 3, copy, 4000);
  for (char *p = strtok(copy, "|"); p; p = strtok(NULL, "|")) sum = mix(sum, strlen(p) + strtod(p, NULL));
  for (int i = 0; i < 200; i++) numbers[i] = i * 7919 % 211;
  qsort(numbers, 200, sizeof *numbers, compare);
  for (int i = 0; i < 200; i++) sum = mix(sum, numbers[i]);
  return mix(sum, (long)strstr(text, "29") - (long)text);
}
int main() {
  uint64_t expected = work();
  on_signal(SIGALRM, tick, SA_RESTART);
  struct itimerval often = {{0, 200}, {0, 200}};
  setitimer(ITIMER_REAL, &often, NULL);
  FILE *null = fopen("/dev/null", "w");
  for (int i = 0; signals < 3000; i++) { CHECK(work() == expected); fprintf(null, "%d\n", i); if (i % 16 == 0) fflush(null); }
  printf("%lx\n", expected);
}
C
same "$T/rate"
build "$T/rate.c" "$T/rate" -static -lm
same "$T/rate"
