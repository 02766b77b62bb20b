// Probes in programs that run: the programs behave as they do natively, and what is counted is what must be.
#include "probes_fixture.h"

namespace weir::engine {
namespace {

// ---- The programs --------------------------------------------------------------------------------------------------

const char* const calls_c = R"(
#include <stdio.h>
static unsigned long calls;
__attribute__((noipa)) long fib(long n) { calls++; return n < 2 ? n : fib(n - 1) + fib(n - 2); }
// loops back to its first block; calls itself; is jumped to
asm("count_down: dec %rdi; jnz count_down; mov $7, %eax; ret\n"
    "again: test %rdi, %rdi; jz 1f; push %rdi; dec %rdi; call again; pop %rdi; 1: mov %rdi, %rax; ret\n"
    "tail: jmp count_down\n");
long count_down(long), again(long), tail(long);
__attribute__((noipa)) long one(long x) { return x + 1; }
__attribute__((noipa)) long two(long x) { return x * 3; }
long (*volatile functions[])(long) = {one, two, count_down};
__attribute__((noipa)) long choose(int i) {
  switch (i % 8) {
    case 0: return one(i);
    case 1: return two(i) + 1;
    case 2: return one(i) * 3;
    case 3: return i ^ 77;
    case 4: return two(i) - one(i);
    case 5: return 5;
    case 6: return i << 3;
    default: return one(two(i));
  }
}
int main() {
  long sum = fib(20);
  for (int i = 0; i < 7; i++) sum += count_down(1000);
  for (int i = 0; i < 300; i++) sum += functions[i % 3](i + 1);
  for (int i = 0; i < 160; i++) sum += choose(i);
  sum += again(50) + tail(9);
  printf("%ld %lu\n", sum, calls);
  return 3;
}
)";

const char* const jumps_c = R"(
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
static jmp_buf back;
static sigjmp_buf back_signal;
static volatile int signals;
__attribute__((noipa)) void deeper(int n) { if (n == 0) longjmp(back, 5); deeper(n - 1); }
static void on_signal(int s) { signals++; if (s == SIGUSR2) siglongjmp(back_signal, 9); }
int main() {
  signal(SIGUSR1, on_signal);
  signal(SIGUSR2, on_signal);
  volatile long sum = 0;
  for (volatile int i = 0; i < 50; i++) {
    int r = setjmp(back);
    if (r == 0) deeper(i % 10);
    sum += r;
    if (sigsetjmp(back_signal, 1) == 0) { raise(SIGUSR1); raise(SIGUSR2); }
    sum += signals;
  }
  printf("%ld %d\n", sum, signals);
  return 0;
}
)";

const char* const signals_c = R"(
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
static volatile int signals;
static volatile unsigned long spoilt;
static void on_signal(int s) {   // all flags, all registers that a call may change
  signals++;
  asm volatile("xor %%eax, %%eax; sub $1, %%rax; mov %%rax, %%rcx; mov %%rax, %%rdx; mov %%rax, %%rsi; mov %%rax, %%rdi; mov %%rax, %%r8; mov %%rax, %%r9; mov %%rax, %%r10; mov %%rax, %%r11"
               ::: "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "cc");
}
__attribute__((noipa)) unsigned long chain(unsigned long n) {   // flags live across branches and calls
  unsigned long a = n, b = 0, c = n * 77;
  asm volatile("mov $40, %%ecx; clc\n"
               "1: adc %2, %0; adc %0, %1; rcl $3, %1; setc %%al; jc 2f; sbb %1, %0; 2: movzbl %%al, %%eax; lea (%0,%%rax), %0; dec %%ecx; jnz 1b\n"
               "adc $0, %0\n" : "+r"(a), "+r"(b) : "r"(c) : "rax", "rcx", "cc");
  return a ^ b;
}
__attribute__((noipa)) unsigned long text(unsigned long n) {
  char s[100];
  snprintf(s, sizeof s, "%lu %lx %s", n, n * n, n % 2 ? "odd" : "even");
  unsigned long h = 5381;
  for (char* p = s; *p; p++) h = h * 33 + *p;
  return h;
}
int main() {
  struct sigaction a;
  memset(&a, 0, sizeof a);
  a.sa_handler = on_signal;
  a.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &a, 0);
  struct itimerval t = {{0, 100}, {0, 100}};
  setitimer(ITIMER_REAL, &t, 0);
  unsigned long sum = 0;
  for (int i = 0; i < 6000 || signals < 400; i++) if (i < 6000) sum = sum * 31 + chain(sum + i) + text(i); else chain(i);
  t.it_interval.tv_usec = t.it_value.tv_usec = 0;
  setitimer(ITIMER_REAL, &t, 0);
  printf("%lx\n", sum);
  return 0;
}
)";

// What handlers see: registers and flags that are live, at a fault and at any time. (A dead one may hold what a probe left there.)
const char* const contexts_c = R"(
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/ucontext.h>
asm(R"|(
fault:  push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15
        mov $1, %eax; mov $2, %ecx; mov $3, %edx; mov $4, %ebx; mov $5, %ebp; mov $6, %esi; mov $7, %edi; mov $8, %r8d; mov $9, %r9d
        mov $10, %r10d; mov $11, %r11d; mov $12, %r12d; mov $13, %r13d; mov $14, %r14d; mov $15, %r15d
        cmp %rcx, %rax
fault_at: mov %rax, 100(%rdx,%rcx,2)
fault_back: adc %rcx, %rax
        pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; ret
spin:   push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15
        mov %rdi, %rcx; mov $3, %edx; mov $4, %ebx; mov $5, %ebp; mov $6, %esi; mov $7, %edi; mov $8, %r8d; mov $9, %r9d
        mov $10, %r10d; mov $11, %r11d; mov $12, %r12d; mov $13, %r13d; mov $14, %r14d; mov $15, %r15d
spin_begin: mov %rcx, %rax; test $1, %al; jz 1f; lea (%rdx,%rbx), %rax; jmp 2f; 1: xor %rdx, %rax; 2: dec %rcx; jnz spin_begin
        add %rdx, %rax; add %rbx, %rax; add %rbp, %rax; add %rsi, %rax; add %rdi, %rax; add %r8, %rax; add %r9, %rax; add %r10, %rax
spin_end: add %r11, %rax; add %r12, %rax; add %r13, %rax; add %r14, %rax; add %r15, %rax
        pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; ret
)|");
long fault(void), spin(long);
extern char fault_at[], fault_back[], spin_begin[], spin_end[];
static volatile int signals, wrong;
static void on_fault(int s, siginfo_t* i, void* c) {
  greg_t* g = ((ucontext_t*)c)->uc_mcontext.gregs;
  const int order[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RBP, REG_RSI, REG_RDI, REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  for (int n = 0; n < 15; n++) printf("%lld ", (long long)g[order[n]]);
  printf("flags %llx at %ld address %ld\n", (long long)g[REG_EFL], (long)(g[REG_RIP] - (long)fault_at), (long)i->si_addr);
  g[REG_RIP] = (long)fault_back;
  g[REG_RAX] = 1000;
}
static void on_alarm(int s, siginfo_t* i, void* c) {
  greg_t* g = ((ucontext_t*)c)->uc_mcontext.gregs;
  if (g[REG_RIP] < (long)spin_begin || g[REG_RIP] >= (long)spin_end) return;
  signals++;
  const int order[] = {REG_RDX, REG_RBX, REG_RBP, REG_RSI, REG_RDI, REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  for (int n = 0; n < 13; n++) wrong += g[order[n]] != n + 3;
}
int main() {
  struct sigaction a;
  memset(&a, 0, sizeof a);
  a.sa_flags = SA_SIGINFO;
  a.sa_sigaction = on_fault;
  sigaction(SIGSEGV, &a, 0);
  for (int i = 0; i < 3; i++) printf("%ld\n", fault());
  a.sa_sigaction = on_alarm;
  sigaction(SIGALRM, &a, 0);
  struct itimerval t = {{0, 200}, {0, 200}};
  setitimer(ITIMER_REAL, &t, 0);
  long sum = spin(1000000);
  while (signals < 200) spin(10000);
  printf("%ld %d\n", sum, wrong);
  return 0;
}
)";

const char* const threads_c = R"(
#include <pthread.h>
#include <stdio.h>
__attribute__((noipa)) long work(long n) { return n * 3 + 1; }
static void* thread(void* p) { long s = 0; for (long i = 0; i < 10000; i++) s += work(i); return (void*)s; }
int main() {
  pthread_t t[4];
  long sum = 0;
  for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, thread, 0);
  for (int i = 0; i < 4; i++) { void* r; pthread_join(t[i], &r); sum += (long)r; }
  printf("%ld\n", sum);
  return 0;
}
)";

const Words ls{"/bin/ls", "-la", "/usr/lib"};
const Words python{"/usr/bin/python3", "-S", "-c",
                   "import re\nd = {i: str(i) for i in range(500)}\nprint(sum(map(len, d.values())), re.sub('(\\d)5', "
                   "r'\\1-', ' '.join(d.values()))[:99])"};

// ---- What is counted -----------------------------------------------------------------------------------------------

TEST(Probes, EntriesAreCalls) {
  Program p = compile("calls", calls_c);
  Entries entries;
  Ran ran = run_same({p.path}, entries.planner());
  auto count = [&](const char* name) { return entries.count(ran, p.symbols.at(name)); };
  EXPECT_EQ(count("main"), 1u);
  EXPECT_EQ(count("fib"), 21891u);
  EXPECT_EQ(count("count_down"), 7u + 100 + 1);  // directly, through a pointer, and jumped to
  EXPECT_EQ(count("one"), 100u + 4 * 20);
  EXPECT_EQ(count("two"), 100u + 3 * 20);
  EXPECT_EQ(count("choose"), 160u);
  EXPECT_EQ(count("again"), 51u);
  EXPECT_EQ(count("tail"), 1u);
}

TEST(Probes, ThreadsCountForThemselves) {
  Program p = compile("threads", threads_c, "-pthread");
  Entries entries;
  Ran ran = run_same({p.path}, entries.planner());
  EXPECT_EQ(entries.count(ran, p.symbols.at("work")), 40000u);
}

struct InvariantCase {
  const char* name;
  const char* source;
  Flow::Returns returns = Flow::AtMostOnce;
};
class Invariants : public testing::TestWithParam<InvariantCase> {};

TEST_P(Invariants, OfFlow) {
  Flow flow;
  Ran ran = run_same({compile(GetParam().name, GetParam().source, "-pthread").path}, flow.planner());
  flow.check(ran, GetParam().returns);
}
INSTANTIATE_TEST_SUITE_P(Probes, Invariants,
                         testing::Values(InvariantCase{"calls", calls_c}, InvariantCase{"jumps", jumps_c, Flow::AnyNumber},
                                         InvariantCase{"signals", signals_c}, InvariantCase{"threads", threads_c}),
                         [](const auto& info) { return info.param.name; });

TEST(Probes, FlowOfRealPrograms) {
  for (const Words& command : {ls, python}) {
    Flow flow;
    Ran ran = run_same(command, flow.planner());
    flow.check(ran, Flow::AtMostOnce);
  }
}

// In the program's own code every call returns, but the one of main's.
TEST(Probes, CallsReturn) {
  Program p = compile("calls", calls_c);
  Flow flow;
  Ran ran = run_same({p.path}, [&](const Subject& s, Counters& c, Plan& plan) {
    for (const char* name : {"main", "fib", "choose", "again", "one", "two"})
      if (s.function.entry.value == p.symbols.at(name)) flow.plan(s.function, c, plan);
  });
  flow.check(ran, Flow::Once);
}

TEST(Probes, ClockIsTheSumOfItsCells) {
  Program p = compile("calls", calls_c);
  Flow flow;
  Counter all{};
  Ran ran = run_same({p.path}, [&](const Subject& s, Counters& c, Plan& plan) {
    if (!all.index) all = c.allocate();
    for (BlockId b = 0; b < s.function.blocks.size(); b++)
      plan.insert(Where::Block, b, {{.kind = Op::AddClock, .value = int64_t(b) + 5}, add(all, int64_t(b) + 5)});
  });
  uint64_t clock = 0;
  for (uint32_t i = 0; i < Counters::clock_cells; i++) {
    clock += ran.cells[i];
    EXPECT_GT(ran.cells[i], 0u);
  }
  EXPECT_EQ(clock, ran.cells[all.index]);
}

// ---- The program does not notice -----------------------------------------------------------------------------------

TEST(Probes, Everywhere) {
  Program calls = compile("calls", calls_c), jumps = compile("jumps", jumps_c),
          threads = compile("threads", threads_c, "-pthread");
  for (const Words& command : {Words{calls.path}, Words{jumps.path}, Words{threads.path}, ls, python})
    run_same(command, plan_everything);
}

TEST(Probes, EverywhereUnderSignals) {
  Program p = compile("signals", signals_c);
  for (int round = 0; round < 3; round++) {
    Ran ran = run_same({p.path}, plan_everything);
    EXPECT_GE(ran.stats.signals, 400u);
  }
}

TEST(Probes, WhatHandlersSee) {
  Program p = compile("contexts", contexts_c);
  run_same({p.path}, plan_everything);
  run_same({p.path}, plan_calls(3));
}

TEST(Probes, RoutinesUnderSignals) {
  Program p = compile("signals", signals_c);
  Ran ran = run_same({p.path}, plan_calls(7));
  EXPECT_GE(ran.stats.signals, 400u);
  run_same(ls, plan_calls(5));
}

}  // namespace
}  // namespace weir::engine
