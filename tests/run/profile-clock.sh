# spec 1, T1: the virtual clock is in zmm31 where the processor has one, else in memory: the figures are the same. And
# zmm31 stays the program's: in loops, across calls and threads, in handlers, and when an instruction with it faults.
. "$(dirname "$0")/lib.sh"
need_cpu avx512vl avx512dq
compile clock.c -mavx512f -pthread <<'C'
#include <immintrin.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static char* page;
static sigjmp_buf out;
static long low(void) { long x; __asm__ volatile("vmovq %%xmm31, %0" : "=r"(x)); return x; }
static void set(long x) { __asm__ volatile("vpbroadcastq %0, %%zmm31" : : "r"(x)); }
__attribute__((noinline)) static long work(long n) { long s = n; for (long i = 0; i < n; i++) s = s * 31 + i; return s; }
__attribute__((noinline)) static long recurse(long n) { return n < 2 ? work(n) : recurse(n - 1) + recurse(n - 2); }
static void on_usr1(int s) { long before = low(); set(7); recurse(5); printf("handler: %ld %ld\n", before, low()); }
static void on_segv(int s) { mprotect(page, 4096, PROT_READ | PROT_WRITE); recurse(3); set(9); }
static void on_usr2(int s) { siglongjmp(out, 1); }
// (The rest of its block counts twice, as it is translated anew from there.)
__attribute__((noinline)) static void fault(void) {
  long sum[8];
  __asm__ volatile("vmovdqu64 %%zmm31, (%0)\n\tvpaddq (%0), %%zmm31, %%zmm31\n\tvmovdqu64 %%zmm31, (%1)" : : "r"(page), "r"(sum) : "memory");
  printf("faulted: %ld %ld %ld\n", ((long*)page)[7], sum[0], sum[7]);
}
static void* thread(void* p) { printf("thread: %ld\n", low()); set(3); work(100); return (void*)low(); }
int main() {
  signal(SIGUSR1, on_usr1), signal(SIGSEGV, on_segv), signal(SIGUSR2, on_usr2);
  set(41);
  for (int i = 0; i < 1000; i++) {
    __asm__ volatile("vpaddq %%zmm31, %%zmm31, %%zmm31\n\tvpsrlq $1, %%zmm31, %%zmm31" : : : "memory");
    if (work(3) == 5) return 1;
  }
  raise(SIGUSR1);
  printf("main: %ld\n", low());
  page = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  fault();
  if (!sigsetjmp(out, 1)) recurse(4), raise(SIGUSR2);
  printf("jumped: %ld\n", low());
  pthread_t t;
  void* result;
  pthread_create(&t, 0, thread, 0), pthread_join(t, &result);
  printf("joined: %ld, %ld, %ld\n", low(), (long)result, recurse(15));
}
C
same "$T/clock"
figures() {
  ask "SELECT f.name, c.calls, c.self, c.self_min, c.self_max, c.total FROM function_count c JOIN function_total f ON f.id = c.function
       WHERE f.image LIKE '%/clock' AND f.name NOT IN ('fault', 'main', '_start') ORDER BY 1, 2, 3"
}
profile "$T/clock"
figures >"$T/register"
WEIR_PROCESSOR=v3 profile "$T/clock"
figures >"$T/memory"
diff "$T/register" "$T/memory" || fail "the figures differ"
grep -q '^recurse|' "$T/register" || fail "no figures"
