# Code that is written on and on does not fill the cache: what was overwritten, or unmapped, makes room, while other threads wait, compute and handle signals.
. "$(dirname "$0")/lib.sh"
compile rewrite.c -pthread <<'C'
#include <pthread.h>
#include "posix.h"
static volatile int stop;
static volatile long ticks;
static void on_tick(int s) { ticks++; }
static void *sleeper(void *p) { while (!stop) usleep(1000); return 0; }
static void *reader(void *p) { char c; return (void *)(long)read((int)(long)p, &c, 1); }
static int call(void *p) { return ((int (*)(void))p)(); }
int main() {
  int pipes[2]; pipe(pipes);
  pthread_t t[2]; pthread_create(&t[0], 0, sleeper, 0), pthread_create(&t[1], 0, reader, (void *)(long)pipes[0]);
  struct sigaction a = {.sa_handler = on_tick, .sa_flags = SA_RESTART}; sigaction(SIGALRM, &a, 0);
  struct itimerval timer = {{0, 2000}, {0, 2000}}; setitimer(ITIMER_REAL, &timer, 0);
  long wrong = 0; char *p = 0;
  for (int i = 0; i < 20000; i++) {
    if (i % 500 == 0) { if (p) munmap(p, 4096); p = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
    char *at = p + i % 7 * 64;
    at[0] = 0xb8, memcpy(at + 1, &i, 4), at[5] = 0xc3;  // mov eax, i; ret
    wrong += call(at) != i;
  }
  stop = 1, write(pipes[1], "x", 1), pthread_join(t[0], 0), pthread_join(t[1], 0);
  printf("%ld\n", wrong);
}
C
same "$T/rewrite"
for tool in none icount; do
  run weir "$WEIR" run --stats --no-archive --tool=$tool -- "$T/rewrite"
  code=$(sed -n 's/^weir: peak sizes: code \([0-9]*\) KiB.*/\1/p' "$T/weir.err")
  ((code < 2000)) || fail "$code KiB of code with $tool"
done
profile "$T/rewrite"
answers "SELECT sum(c.calls) FROM call_count c JOIN function f ON f.id = c.callee JOIN image i ON i.id = f.image WHERE i.path LIKE '[code%'" <<<20000
