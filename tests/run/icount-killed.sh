# The counts are written when the program dies by a signal, by exit in a thread, by exec.
. "$(dirname "$0")/lib.sh"
compile killed.c -pthread <<'C'
#include "posix.h"
static void work(long millions) { long n = millions * 1000000 / 2; asm volatile("1: dec %0; jnz 1b" : "+r"(n)); }
static void *leave(void *x) { work(20); exit(3); }
int main(int argc, char **argv) {
  pthread_t thread; work(10);
  switch (argv[1][0]) {
    case 'k': raise(SIGKILL);
    case 's': *(volatile int *)0 = 1;
    case 't': pthread_create(&thread, NULL, leave, NULL); for (;;) pause();
    case 'e': execl(argv[0], argv[0], "again", NULL);
  }
}
C
STATUS=137 count "$T/killed" kill;  [[ $(json 'j["instructions"] // 1000000') == 10 ]] || fail "$(json j)"
STATUS=139 count "$T/killed" segv;  [[ $(json 'j["instructions"] // 1000000') == 10 ]] || fail "$(json j)"
STATUS=3 count "$T/killed" thread;  [[ $(json 'j["instructions"] // 1000000') == 30 ]] || fail "$(json j)"
count "$T/killed" exec;             [[ $(json 'j["instructions"] // 1000000') == 20 ]] || fail "$(json j)"
