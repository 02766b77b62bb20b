# Programs that use the gs segment: arch_prctl, wrgsbase, loads and stores, in every thread, across signals and fork.
. "$(dirname "$0")/lib.sh"
need_cpu fsgsbase
compile gs.c -mfsgsbase -pthread <<'C'
#include "posix.h"
#include <asm/prctl.h>
#include <immintrin.h>
static __thread uint64_t block[64]; static volatile int signals;
static uint64_t load(long offset) { uint64_t value; asm volatile("mov %%gs:(%1), %0" : "=r"(value) : "r"(offset)); return value; }
static void tick(int number, siginfo_t *info, void *context) { CHECK(load(8) == block[1]); signals++; }
static void *work(void *argument) {
  unsigned long base = 1; long me = (long)argument;
  CHECK(syscall(SYS_arch_prctl, ARCH_GET_GS, &base) == 0 && base == 0 && _readgsbase_u64() == 0);
  for (int i = 0; i < 64; i++) block[i] = mix(me, i);
  if (me % 2) syscall(SYS_arch_prctl, ARCH_SET_GS, block); else _writegsbase_u64((uint64_t)block);
  CHECK(syscall(SYS_arch_prctl, ARCH_GET_GS, &base) == 0 && base == (uint64_t)block && _readgsbase_u64() == base);
  uint64_t sum = 0;
  for (int round = 0; round < 20000; round++) {
    asm volatile("incq %%gs:80; lock addq $3, %%gs:(%0); push %%gs:88; pop %%rax; mov %%rax, %%gs:96; movdqu %%gs:16, %%xmm1" : : "r"(104L) : "rax", "xmm1", "memory");
    for (int i = 0; i < 5; i++) sum = mix(sum, load(i * 8));
  }
  CHECK(block[10] == mix(me, 10) + 20000 && block[13] == mix(me, 13) + 60000 && block[12] == block[11]);
  asm volatile("movabs %%gs:8, %%rax; inc %%rax; movabs %%rax, %%gs:112; movabs %%gs:8, %%al; movabs %%ax, %%gs:120" : : : "rax", "memory");
  CHECK(block[14] == block[1] + 1 && (uint16_t)block[15] == (uint16_t)(((block[1] + 1) & ~255) | (uint8_t)block[1]));
  uint64_t far; asm volatile("lea %%gs:8, %0" : "=r"(far)); CHECK(far == 8);
  return (void *)sum;
}
int main() {
  pthread_t threads[4]; void *result;
  for (long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, (void *)i);
  for (long i = 0; i < 4; i++) pthread_join(threads[i], &result), printf("%lx\n", (long)result);
  printf("%lx\n", (long)work((void *)9)), fflush(stdout);
  on_signal(SIGALRM, tick, 0); struct itimerval often = {{0, 500}, {0, 500}}; setitimer(ITIMER_REAL, &often, NULL);
  while (signals < 200) CHECK(load(16) == block[2]);
  if (fork() == 0) { CHECK(load(8) == block[1] && _readgsbase_u64() == (uint64_t)block); puts("child"); fflush(stdout); _exit(0); }
  while (wait(NULL) < 0) {}                       // signals still arrive
  puts("end");
}
C
same "$T/gs"
