# Without perf's events timers interrupt threads, also new ones, those of children, and of what they execute.
. "$(dirname "$0")/lib.sh"
compile both.c -pthread <<'C'
#include "posix.h"
static volatile long n;
__attribute__((noipa)) static void spin(void) { compute(0.5); }
__attribute__((noipa)) static void *in_thread(void *p) { spin(); n = 0; return NULL; }
__attribute__((noipa)) static void in_child(void) { spin(); n = 0; }
int main(int argc, char **argv) {
  pthread_t t; int status;
  pthread_create(&t, NULL, in_thread, NULL);
  if (!fork()) { if (argc == 1) in_child(), _exit(3); char *words[] = {argv[0], NULL}; execv(argv[0], words); }
  CHECK(wait(&status) > 0);
  pthread_join(t, NULL);
  puts("right");
}
C
OPTIONS=--source=timer RATE=250 sampled "$T/both"
[[ $(ask 'SELECT source FROM sampling') == timer ]] || fail "$(ask 'SELECT * FROM sampling')"
seen in_thread in_child
OPTIONS=--source=timer RATE=20000 sampled "$T/both" execute
OPTIONS='--source=timer --clock=wall' RATE=500 sampled "$T/both"
OPTIONS=--source=timer RATE=20000 sampled sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true || echo $?; done; echo $(seq 5 | sort -r)'
