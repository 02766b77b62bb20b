# A process with threads that run all the time parts from its child's space again and again.
. "$(dirname "$0")/lib.sh"
compile part.c -pthread <<'C'
#include "posix.h"
#include <dlfcn.h>
static volatile int stop;
static int by_value(const void *a, const void *b) { int x = *(int *)a, y = *(int *)b; return x < y ? -1 : x > y; }
static void *work(void *seed) {
  int v[200]; unsigned s = (long)seed; char text[64];
  while (!stop) {
    for (int i = 0; i < 200; i++) v[i] = s = s * 1103515245 + 12345;
    qsort(v, 200, sizeof *v, by_value), snprintf(text, sizeof text, "%d %s", v[3], "x");
    for (int i = 1; i < 200; i++) if (v[i - 1] > v[i]) abort();
  }
  return NULL;
}
int main() {
  pthread_t t[3]; for (long i = 0; i < 3; i++) pthread_create(&t[i], NULL, work, (void *)(i + 1));
  for (int i = 0; i < 40; i++) {
    pid_t child = fork(); if (child == 0) { pause(); _exit(0); }
    void *math = dlopen("libm.so.6", RTLD_NOW); double (*sine)(double) = dlsym(math, "sin"); CHECK(sine(0) == 0), dlclose(math);
    kill(child, SIGKILL), waitpid(child, NULL, 0);
  }
  stop = 1; for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
  return 0;
}
C
same "$T/part"; same "$T/part"
