// Threads that write code and run it, each in its own way, and all of them what the others wrote: it prints how often a result was wrong.
//   writers ROUNDS
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
enum { size = 16384, places = size / 64 };
static int rounds;
static long wrong;
static char *shared_rw, *shared_rx;                 // two mappings of the same memory
static char *pool;                                  // written to by one thread, run by all
static unsigned published;                          // places of the pool that are ready
static void check(int is_right) { if (!is_right) __atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED); }
static unsigned random_of(unsigned *seed) { return *seed = *seed * 1664525 + 1013904223, *seed >> 8; }
static void serialize(void) { unsigned a = 0, b, c = 0, d; __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d) : : "memory"); }

// int f(int n): for (sum = 0; n; n--) sum += k; return sum + v
static void write_function(char *at, int k, int v) {
  static const unsigned char code[] = {0x31, 0xc0, 0x85, 0xff, 0x74, 0x09, 0x05, 1, 1, 1, 1, 0xff, 0xcf, 0x75, 0xf7, 0x05, 2, 2, 2, 2, 0xc3};
  char copy[sizeof code];
  memcpy(copy, code, sizeof code), memcpy(copy + 7, &k, 4), memcpy(copy + 16, &v, 4), memcpy(at, copy, sizeof copy);
}
static int call(char *at, int n) { serialize(); return ((int (*)(int))at)(n); }
static char *map(int protection) { return mmap(0, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

// Writable and executable memory, rewritten in place.
static void *rewrite(void *p) {
  unsigned seed = (long)p;
  char *code = map(PROT_READ | PROT_WRITE | PROT_EXEC);
  for (int i = 0; i < rounds; i++) {
    char *at = code + random_of(&seed) % 4 * 64;
    int k = random_of(&seed), v = random_of(&seed);
    write_function(at, k, v);
    check(call(at, 3) == 3 * k + v), check(call(at, 0) == v);
  }
  munmap(code, size);
  return 0;
}
// Never both: written, then made executable.
static void *flip(void *p) {
  unsigned seed = (long)p;
  char *code = map(PROT_READ | PROT_WRITE);
  int k[places] = {0}, v[places] = {0};
  for (int i = 0; i < rounds; i++) {
    mprotect(code, size, PROT_READ | PROT_WRITE);
    int at = random_of(&seed) % 8;
    k[at] = random_of(&seed), v[at] = random_of(&seed);
    write_function(code + 64 * at, k[at], v[at]);
    mprotect(code, size, PROT_READ | PROT_EXEC);
    for (int j = 0; j < 8; j++) if (k[j]) check(call(code + 64 * j, 5) == 5 * k[j] + v[j]);
  }
  munmap(code, size);
  return 0;
}
// A place of its own in memory that is mapped twice.
static void *dual(void *p) {
  unsigned seed = (long)p;
  long at = (long)p % places * 64;
  for (int i = 0; i < rounds; i++) {
    int k = random_of(&seed), v = random_of(&seed);
    write_function(shared_rw + at, k, v);
    check(call(shared_rx + at, 4) == 4 * k + v);
  }
  return 0;
}
// Mapped, run, unmapped; what comes next is often at the same address.
static void *reuse(void *p) {
  unsigned seed = (long)p;
  for (int i = 0; i < rounds; i++) {
    char *code = map(PROT_READ | PROT_WRITE | PROT_EXEC);
    int k = random_of(&seed), v = random_of(&seed);
    write_function(code, k, v);
    if (i % 2) mprotect(code, size, PROT_READ | PROT_EXEC);
    if (i % 3 == 0) code = mremap(code, size, 2 * size, MREMAP_MAYMOVE);
    check(call(code, 6) == 6 * k + v);
    munmap(code, i % 3 ? size : 2 * size);
  }
  return 0;
}
// One writes new functions, as a compiler does; the others run those that are there.
static void *publish(void *p) {
  for (unsigned i = 0; i < places; i++) {
    write_function(pool + 64 * i, i, i * i);
    __atomic_store_n(&published, i + 1, __ATOMIC_RELEASE);
    usleep(100);
  }
  return 0;
}
static void *consume(void *p) {
  unsigned seed = (long)p, n;
  for (int i = 0; i < rounds || n < places; i++) {
    n = __atomic_load_n(&published, __ATOMIC_ACQUIRE);
    unsigned k = n ? random_of(&seed) % n : 0;
    if (n) check(call(pool + 64 * k, 2) == (int)(2 * k + k * k));
  }
  return 0;
}
int main(int argc, char **argv) {
  rounds = atoi(argv[1]);
  int fd = memfd_create("code", 0);
  if (ftruncate(fd, size)) return 2;
  shared_rw = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), shared_rx = mmap(0, size, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
  pool = map(PROT_READ | PROT_WRITE | PROT_EXEC);
  void *(*const ways[])(void *) = {rewrite, flip, dual, reuse, consume, publish};
  pthread_t t[11];
  for (long i = 0; i < 11; i++) pthread_create(&t[i], 0, i < 10 ? ways[i % 5] : publish, (void *)(i + 1));
  for (int i = 0; i < 11; i++) pthread_join(t[i], 0);
  printf("wrong: %ld\n", wrong);
  return wrong != 0;
}
