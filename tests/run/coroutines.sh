# Ucontext coroutines: ten thousand switches, across threads, with exceptions inside; and switches written by hand.
. "$(dirname "$0")/lib.sh"
compile coroutines.cc -pthread <<'C'
#include "posix.h"
#include <thread>
#include <vector>
enum { N = 10 };
static thread_local ucontext_t contexts[N], main_context; static thread_local uint64_t sum; static thread_local int current;
static void body(int me) {
  for (int i = 0; i < 1000; i++) {
    sum = mix(sum, me * 1000 + i);
    try { if (i % 50 == 0) throw i; } catch (int n) { sum += n; }
    int next = (me + 1) % N; swapcontext(&contexts[me], &contexts[next]);
  }
}
static void run(uint64_t *result) {
  std::vector<std::vector<char>> stacks(N, std::vector<char>(65536));
  for (int i = 0; i < N; i++) {
    getcontext(&contexts[i]);
    contexts[i].uc_stack.ss_sp = stacks[i].data(), contexts[i].uc_stack.ss_size = 65536, contexts[i].uc_link = &main_context;
    makecontext(&contexts[i], (void (*)())body, 1, i);
  }
  swapcontext(&main_context, &contexts[0]);
  *result = sum;
}
extern "C" void switch_to(void **from, void *to);
asm("switch_to: push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; mov %rsp, (%rdi); mov %rsi, %rsp; pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; ret");
static void *here, *there; static long steps;
static void other() { for (;;) { steps += 3; switch_to(&there, here); } }
int main() {
  uint64_t results[4]; std::vector<std::thread> threads;
  run(&results[0]);
  for (int i = 1; i < 4; i++) threads.emplace_back(run, &results[i]);
  for (auto &t : threads) t.join();
  for (auto r : results) printf("%lx\n", r);
  static void *stack[8192] __attribute__((aligned(16))); stack[8190] = (void *)other, there = &stack[8184];
  for (int i = 0; i < 100000; i++) switch_to(&here, there);
  printf("%ld\n", steps);
}
C
same "$T/coroutines"
