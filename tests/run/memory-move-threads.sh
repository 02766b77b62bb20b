# A program whose threads ask for memory where Weir's own is, at the same time, while others run code, write code, fork, vfork, execute and begin threads.
. "$(dirname "$0")/lib.sh"
compile movers.c <<'C'
#include "posix.h"
#include <spawn.h>
static volatile int over;
static long __attribute__((noinline)) fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
// A page of Weir's table, wherever that is by now. Natively: any page.
static char *wanted(long id) {
  FILE *maps = fopen("/proc/self/maps", "re"); unsigned long begin, end, at = 0x200000000000; char line[500];
  while (fgets(line, sizeof line, maps))
    if (strstr(line, "memfd:weir-table") && sscanf(line, "%lx-%lx", &begin, &end) == 2 && end - begin > 1 << 20) at = begin;
  return fclose(maps), (char *)at + id * 4096;
}
static void *mover(void *id) {
  long got = 0;
  for (int i = 0; i < 8; i++) {
    char *at = wanted((long)id), *p = mmap(at, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    memcpy(p, "\xb8\x07\0\0\0\xc3", 6), got += p == at && ((int (*)(void))p)() == 7 && fib(8) == 21, munmap(p, 4096);
  }
  return (void *)got;
}
static void *born(void *p) { return (void *)fib(9); }
static void *worker(void *kind) {
  long wrong = 0; int status; void *r; pid_t pid; pthread_t t; char *argv[] = {"true", 0}, *none[] = {0};
  unsigned char *code = mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int n = 1; !over; n++) switch ((long)kind) {
    case 0: wrong += fib(12) != 144; break;
    case 1: memcpy(code, (unsigned char[]){0xb8, n, n >> 8, 0, 0, 0xc3}, 6), wrong += ((int (*)(void))code)() != (n & 0xffff); break;
    case 2: if (!(pid = fork())) _exit(mover((void *)9l) == (void *)8 ? 3 : 4); waitpid(pid, &status, 0), wrong += status != 3 << 8; break;
    case 3: if (!(pid = vfork())) _exit(fib(9)); waitpid(pid, &status, 0), wrong += status != 34 << 8; break;
    case 4: wrong += posix_spawn(&pid, "/bin/true", 0, 0, argv, none) != 0, waitpid(pid, &status, 0), wrong += status != 0; break;
    case 5: pthread_create(&t, 0, born, 0), pthread_join(t, &r), wrong += (long)r != 34; break;
    case 6: wrong += execve("/nowhere", argv, none) != -1 || errno != ENOENT; break;
  }
  return (void *)wrong;
}
int main(void) {
  pthread_t workers[7], movers[3]; void *r;
  for (long i = 0; i < 7; i++) pthread_create(&workers[i], 0, worker, (void *)i);
  for (long i = 0; i < 3; i++) pthread_create(&movers[i], 0, mover, (void *)i);
  for (int i = 0; i < 3; i++) pthread_join(movers[i], &r), printf("got %ld\n", (long)r);
  over = 1;
  for (int i = 0; i < 7; i++) pthread_join(workers[i], &r), printf("wrong %ld\n", (long)r);
}
C
same "$T/movers"
# A SIGTRAP that is sent to a thread which is stepped, as its process moves, is not lost.
compile trap.c <<'C'
#include "posix.h"
static volatile int over, end, got; static volatile pid_t tid;
static void on(int s) { got++; }
static void *work(void *none) { tid = gettid(); while (!end) getppid(), mprotect(&over, 0, PROT_READ); return 0; }
static void *move(void *none) {
  for (int i = 0; i < 6; i++) mmap((void *)(0x72000000 + i * 0x20000000ul), 0x10000000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  over = 1;
  return 0;
}
int main(void) {
  pthread_t a, b; int sent = 0;
  signal(SIGTRAP, on), pthread_create(&a, 0, work, 0);
  while (!tid) sched_yield();
  pthread_create(&b, 0, move, 0);
  do { int before = got; syscall(SYS_tgkill, getpid(), tid, SIGTRAP), sent++; for (int i = 0; got == before && i < 200000; i++) usleep(100); } while (!over);
  end = 1;
  pthread_join(b, 0), pthread_join(a, 0);
  printf("%d lost\n", sent - got);
}
C
same "$T/trap"
