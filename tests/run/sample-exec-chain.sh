# spec 3, S7: a signal that comes inside execve, where the new program has no handler yet, ends nobody.
. "$(dirname "$0")/lib.sh"
compile chain.c -pthread <<'C'
#include "posix.h"
static void *spin(void *p) { for (volatile long n = 0;; n++) {} }
static void execute(char **argv, int left) {
  char text[16]; sprintf(text, "%d", left - 1);
  char *next[] = {argv[0], text, argv[2], NULL}, *none[] = {NULL};
  if (left % 4 == 0) execve("/nonexistent", next, none);
  if (left % 2) execve(argv[0], next, none); else execv(argv[0], next);
}
int main(int argc, char **argv) {
  int left = atoi(argv[1]); pthread_t thread;
  if (argv[2][0] == 't') pthread_create(&thread, NULL, spin, NULL);
  for (volatile int i = 0; i < 100000; i++) {}
  if (left) execute(argv, left);
  puts("the last"); return 7;
}
C
STATUS=7 sampled "$T/chain" 150 alone
STATUS=7 sampled "$T/chain" 60 threads
