// A program whose cycles are proportional to its time: known_shares ROUNDS THREADS
//
// All that takes time here is one loop, a chain of multiplications, each of which waits for the one before: what it costs depends neither
// on caches, nor on alignment, nor on what the processor predicts, and a model of the processor that is wrong about it is wrong
// everywhere by the same factor. Functions differ in how often they go round. So the shares of an exact profile, which has modelled
// cycles, are those of a profile by time.
//
// Work is done in short rounds, in an order and of sizes that look random and are the same in every run: a machine that is slower for a
// while is so for all functions, and no period of the program can agree with the period of a sampler. All threads do the same,
// as one of them may have the slower processor.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#define FUNCTION __attribute__((noipa, noinline))
static __thread uint64_t state;

static inline __attribute__((always_inline)) uint64_t next(void) { return (state = state * 6364136223846793005u + 1442695040888963407u) >> 33; }

static inline __attribute__((always_inline)) void work(long weight) {
  long turns = weight * (40 + next() % 121);
  uint64_t x = 3;
  __asm__ volatile("1: .rept 16; imul %0, %0; .endr; dec %1; jnz 1b" : "+r"(x), "+r"(turns)::"cc");
}

#define LEAF(name, weight) FUNCTION void name(void) { work(weight); }
LEAF(leaf_a, 2) LEAF(leaf_b, 3) LEAF(leaf_c, 4) LEAF(leaf_d, 5) LEAF(leaf_e, 6) LEAF(leaf_f, 8) LEAF(leaf_g, 10) LEAF(leaf_h, 12)
LEAF(leaf_i, 14) LEAF(leaf_j, 16) LEAF(leaf_k, 20) LEAF(leaf_l, 24)

// The same leaves by several ways, with time of their own between.
FUNCTION void inner_a(void) { leaf_a(); work(5); leaf_l(); }
FUNCTION void inner_b(void) { work(9); leaf_k(); leaf_b(); }
FUNCTION void inner_c(void) { leaf_c(); leaf_d(); work(7); }
FUNCTION void middle_a(void) { inner_a(); work(4); inner_b(); leaf_j(); }
FUNCTION void middle_b(void) { inner_b(); leaf_i(); inner_c(); work(6); }
FUNCTION void middle_c(void) { leaf_h(); work(11); inner_a(); inner_c(); leaf_g(); }

// Recursion, of one function and of two; a frame that is found by rbp.
FUNCTION void countdown(int n) { work(4); if (n) countdown(n - 1); else leaf_f(); }
FUNCTION void odd(int n);
FUNCTION void even(int n) { work(3); if (n) odd(n - 1); else leaf_e(); }
FUNCTION void odd(int n) { work(2); if (n) even(n - 1); else leaf_e(); }
FUNCTION void sized(int n) { volatile char room[16 + n % 7 * 48]; room[0] = 1; work(8); leaf_l(); room[0]++; }

FUNCTION void recursive(void) { countdown(next() % 6); even(next() % 5); sized(next() % 64); }

static void (*const ways[])(void) = {middle_a, middle_b, middle_c, recursive};

FUNCTION void rounds(long n) {
  while (n--) for (int i = 0; i < 4; i++) ways[next() % 4]();
}

static long count;
static void *thread(void *seed) { state = (uint64_t)(uintptr_t)seed * 7919; rounds(count); return 0; }

int main(int argc, char **argv) {
  int threads = atoi(argv[2]);
  pthread_t ids[64];
  count = atol(argv[1]) / threads;
  for (int i = 1; i < threads; i++) pthread_create(&ids[i], 0, thread, (void *)(uintptr_t)i);
  thread(0);
  for (int i = 1; i < threads; i++) pthread_join(ids[i], 0);
}
