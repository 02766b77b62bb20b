# Code at addresses with the same low 32 bits: each call, jump and return goes to its own, before and after others have come and gone.
. "$(dirname "$0")/lib.sh"
compile twins.c -O1 <<'C'
#include "posix.h"
#include <stdint.h>
typedef int Code(int, void *);
static int __attribute__((noinline)) twice(int x, void *f) { return 2 * x; }
static unsigned char *map(uintptr_t at, int k) {  // lea k(%rdi),%eax; ret, or: call *%rsi; add $k,%eax; ret
  unsigned char plain[] = {0x8d, 0x47, k, 0xc3}, calls[] = {0x53, 0x31, 0xdb, 0x57, 0x56, 0x31, 0xf6, 0x58, 0xff, 0xd0, 0x5f, 0x83, 0xc0, k, 0x5b, 0xc3};
  unsigned char *p = mmap((void *)(at & ~4095ul), 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (p == MAP_FAILED) perror("mmap"), exit(1);
  memcpy((void *)at, plain, sizeof plain), memcpy((void *)(at + 64), calls, sizeof calls);
  if (mprotect(p, 8192, PROT_READ | PROT_EXEC)) perror("mprotect"), exit(1);
  return p;
}
static long sum(uintptr_t here, int from) {
  long sum = 0;
  for (int i = 0; i < 500; i++) {
    sum = 3 * sum + twice(i, 0) & 0xffffffffff;
    for (uintptr_t k = from; k < 5; k++) {
      uintptr_t at = (here & 0xffffffff) | k << 36;
      sum += ((Code *)at)(i, 0) * k + ((Code *)(at + 64))(i, (Code *)at) + ((Code *)(at + 64))(i, twice);
    }
  }
  return sum;
}
static void *work(void *here) { return (void *)sum((uintptr_t)here, 2); }
int main() {
  uintptr_t here = (uintptr_t)twice;
  printf("%d\n", twice(1, 0));
  for (uintptr_t k = 1; k < 5; k++) map((here & 0xffffffff) | k << 36, k), printf("%ld\n", k == 4 ? sum(here, 1) : 0);
  munmap((void *)(((here & 0xffffffff) | 1ul << 36) & ~4095ul), 8192);
  pthread_t threads[3]; void *r;
  for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, (void *)here);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], &r), printf("%ld\n", (long)r);
  fflush(stdout);
  if (fork() == 0) { map((here & 0xffffffff) | 1ul << 36, 9), printf("child %ld\n", sum(here, 1)), fflush(stdout), _exit(0); }
  wait(0), printf("%ld\n", sum(here, 2));
  for (uintptr_t k = 2; k < 5; k++) munmap((void *)(((here & 0xffffffff) | k << 36) & ~4095ul), 8192);
  printf("%ld\n", sum(here, 5));
}
C
same "$T/twins"
same "$T/twins"  # (the second time with archives)
[[ $("$WEIR" run -q --keep-addresses -- "$T/twins") == "$("$T/twins")" ]] || fail "with --keep-addresses"
compile wide.c <<'C'
#include "posix.h"
int main() {  // all low halves are shared
  unsigned char code[] = {0x8d, 0x47, 7, 0xc3}, *p = mmap(0, 5ul << 30, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  long sum = 0;
  for (int k = 0; k < 2; k++) memcpy(p + (4ul << 30) * k, code, 4), code[2] = 9;
  for (int i = 0; i < 1000; i++) sum += ((int (*)(int))p)(i) - 2 * ((int (*)(int))(p + (4ul << 30)))(i);
  printf("%ld\n", sum);
}
C
same "$T/wide"
