# Exit from a thread, return from main with threads running, exec and death while others run.
. "$(dirname "$0")/lib.sh"
compile ends.c -pthread <<'C'
#include "posix.h"
static int how; static char *self;
static void at_exit(void) { puts("atexit"); }
static void *spin(void *x) { for (volatile long n = 0;; n++) {} }
static void *block(void *x) { for (;;) pause(); }
static void *ender(void *x) {
  if (how == 1) exit(21);
  if (how == 2) _exit(22);
  if (how == 3) execl("/bin/sh", "sh", "-c", "echo executed by a thread; exit 23", NULL);
  if (how == 4) raise(SIGTERM);
  if (how == 5) abort();
  if (how == 6) execl(self, self, "1", NULL);
  if (how == 7) execl("/nonexistent", "x", NULL), exit(27);
  return NULL;
}
int main(int argc, char **argv) {
  pthread_t threads[8]; how = atoi(argv[1]), self = argv[0];
  atexit(at_exit);
  for (int i = 0; i < 6; i++) pthread_create(&threads[i], NULL, i % 2 ? spin : block, NULL);
  if (how == 0) return 20;
  if (how == 8) { execl("/bin/echo", "echo", "executed by main", NULL); }
  pthread_create(&threads[6], NULL, ender, NULL);
  for (;;) pause();
}
C
STATUS=20 same "$T/ends" 0
STATUS=21 same "$T/ends" 1
STATUS=22 same "$T/ends" 2
STATUS=23 same "$T/ends" 3
STATUS=143 same "$T/ends" 4
STATUS=134 same "$T/ends" 5
STATUS=21 same "$T/ends" 6
STATUS=27 same "$T/ends" 7
same "$T/ends" 8
