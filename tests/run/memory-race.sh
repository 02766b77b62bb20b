# Memory that one thread maps where Weir puts a code cache in the same instant, as another one comes to new code: both are there.
. "$(dirname "$0")/lib.sh"
compile race.c <<'C'
#include "posix.h"
#define ROUNDS 96
static pthread_barrier_t both;
static volatile unsigned wait_for;
static char *code_of(int i) { return (char *)0x100000000000 + i * (4ul << 30) + (3ul << 30); }
static void *run_code(void *none) {
  long sum = 0;
  for (int i = 0; i < ROUNDS; i++) {
    unsigned char add[] = {0x48, 0x8d, 0x47, i, 0xc3};  // lea i(%rdi), %rax ; ret
    char *code = mmap(code_of(i), 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    memcpy(code, add, sizeof add);
    pthread_barrier_wait(&both);
    sum += ((long (*)(long))code)(1);
    pthread_barrier_wait(&both);
  }
  return (void *)sum;
}
int main(int argc, char **argv) {
  pthread_t other; void *sum; int lost = 0, how = atoi(argv[1]); const long size = 32 << 20;
  pthread_barrier_init(&both, 0, 2), pthread_create(&other, 0, run_code, 0);
  for (int i = 0; i < ROUNDS; i++) {
    long *pages[16], *old = mmap(code_of(i) + (16 << 20), 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    old[0] = 1000;
    pthread_barrier_wait(&both);
    for (unsigned k = 0; k < rand() % 4096u; k++) wait_for = k;
    for (int k = 0; k < 16; k++) {  // near code, from a GiB below on
      char *at = code_of(i) - (1ul << 30) - 16 * size + (15 - k) * size;
      int flags = MAP_PRIVATE | MAP_ANONYMOUS | (how == 0 ? MAP_FIXED : how == 1 ? MAP_FIXED_NOREPLACE : 0);
      if (how == 3) pages[k] = k ? mremap(pages[k - 1], 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, at) : mremap(old, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, at);
      else pages[k] = mmap(at, 4096, PROT_READ | PROT_WRITE, flags, -1, 0);
      lost += pages[k] == MAP_FAILED || (how != 2 && pages[k] != (long *)at);
      pages[k][0] = how == 3 ? pages[k][0] + 1 : 1000 * i + k;
    }
    pthread_barrier_wait(&both);
    for (int k = 0; k < 16 && how != 3; k++) lost += pages[k][0] != 1000 * i + k;
    if (how == 3) lost += pages[15][0] != 1016;
    for (int k = 0; k < 16; k++) munmap(pages[k], 4096);
  }
  pthread_join(other, &sum);
  printf("%ld, %d lost\n", (long)sum, lost);
}
C
for how in 0 1 2 3; do same "$T/race" $how; done
# The same with a child, whose memory Weir's is shared with at first; with many small mappings wherever the kernel puts them; and munmap over holes.
compile others.c <<'C'
#include "posix.h"
#define ROUNDS 40
static pthread_barrier_t both;
static char *code_of(int i) { return (char *)0x100000000000 + i * (16ul << 30) + (3ul << 30); }
static char *make(char *at, int i) {
  unsigned char add[] = {0x48, 0x8d, 0x47, i, 0xc3};
  return memcpy(mmap(at, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), add, sizeof add);
}
static void *run_code(void *how) {
  long sum = 0;
  for (int i = 0; i < ROUNDS; i++) {
    char *code = make(code_of(i), i);
    pthread_barrier_wait(&both), sum += ((long (*)(long))code)(1);
    pthread_barrier_wait(&both), sum += ((long (*)(long))code)(1);
  }
  return (void *)sum;
}
int main(int argc, char **argv) {
  pthread_t other; void *sum; long mine = 0; char how = argv[1][0]; static long *pages[64];
  pthread_barrier_init(&both, 0, 2), pthread_create(&other, 0, run_code, 0);
  for (int i = 0; i < ROUNDS; i++) {
    char *low = make(code_of(i) - (3ul << 30) - 65536, i);
    mine += ((long (*)(long))low)(1);
    pid_t child = how == 'c' ? fork() : 0;
    if (how == 'c' && !child) pause();
    pthread_barrier_wait(&both);
    for (volatile int k = rand() % 20000; k; k--) {}
    if (how == 'h') munmap(low, code_of(i) - (1ul << 30) - low), mprotect(low, 8192, PROT_NONE), madvise(low, 1 << 20, MADV_DONTNEED);
    for (int k = 0; k < 64 && how != 'h'; k++) {
      char *at = how == 'c' ? code_of(i) - (3ul << 29) + k * (8ul << 20) : 0;
      pages[k] = mmap(at, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
      pages[k][0] = k;
    }
    pthread_barrier_wait(&both);
    for (int k = 0; k < 64 && how != 'h'; k++) mine += pages[k][0], munmap(pages[k], 4096);
    if (child) kill(child, SIGKILL), waitpid(child, 0, 0);
  }
  pthread_join(other, &sum);
  printf("%ld %ld\n", (long)sum, mine);
}
C
for how in child kernel holes; do same "$T/others" $how; done
