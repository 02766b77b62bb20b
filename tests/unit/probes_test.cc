// Probes in programs that run: the programs behave as they do natively, and what is counted is what must be.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "engine/engine.h"
#include "rt/abi.h"

namespace weir::engine {
namespace {

using instrument::Counter;
using instrument::Counters;
using instrument::Op;
using instrument::Plan;
using instrument::Subject;
using instrument::Temp;
using instrument::ThreadData;
using instrument::Where;
using x86::Block;
using x86::BlockEnd;
using x86::BlockId;
using x86::no_block;
using Words = std::vector<std::string>;

// ---- Programs ------------------------------------------------------------------------------------------------------

// A directory for all tests, gone with them.
struct Directory {
  std::string path;

  Directory() {
    char name[] = "/tmp/weir-probes-XXXXXX";
    path = mkdtemp(name);
  }
  ~Directory() { std::filesystem::remove_all(path); }
};

std::string file(const std::string& name) {
  static Directory directory;
  return directory.path + "/" + name;
}

std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

struct Program {
  std::string path;
  std::map<std::string, uint64_t> symbols;  // addresses: the program is linked where it will run
};

Program compile(const std::string& name, const std::string& source, const std::string& options = "") {
  Program p{file(name), {}};
  std::ofstream(p.path + ".c") << source;
  std::string command = "gcc -O2 -no-pie -fno-optimize-sibling-calls -o " + p.path + " " + p.path + ".c " + options +
                        " && nm " + p.path + " > " + p.path + ".nm";
  EXPECT_EQ(system(command.c_str()), 0);
  std::istringstream lines(contents(p.path + ".nm"));
  for (std::string line; std::getline(lines, line);) {
    char symbol[256];
    uint64_t address;
    if (sscanf(line.c_str(), "%lx %*c %255s", &address, symbol) == 2) p.symbols[symbol] = address;
  }
  return p;
}

struct Ran {
  int status = -1;
  std::string output;
  std::vector<uint64_t> cells;  // of all threads
  Stats stats = {};
};

Ran run_native(const Words& command) {
  std::string out = file("native");
  pid_t pid = fork();
  if (pid == 0) {
    dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
    std::vector<char*> argv;
    for (const std::string& w : command) argv.push_back(const_cast<char*>(w.c_str()));
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return {WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), contents(out), {}, {}};
}

// ---- Tools ---------------------------------------------------------------------------------------------------------

using Planner = std::function<void(const Subject&, Counters&, Plan&)>;

class TestTool : public instrument::Tool {
 public:
  TestTool(Planner planner, std::vector<uint64_t>& cells) : planner_(std::move(planner)), cells_(cells) {}
  std::unique_ptr<Tool> copy() const override { return std::make_unique<TestTool>(*this); }
  void plan(const Subject& subject, Counters& counters, Plan& plan) override { planner_(subject, counters, plan); }
  void collect(const ThreadData& thread) override {
    if (cells_.size() < thread.cells.size()) cells_.resize(thread.cells.size());
    for (size_t i = 0; i < thread.cells.size(); i++) cells_[i] += thread.cells[i];
  }

 private:
  Planner planner_;
  std::vector<uint64_t>& cells_;
};

Ran run_weir(const Words& command, const Planner& planner) {
  Ran ran;
  std::string out = file("ours");
  fflush(stdout);
  int stdout_before = dup(1), fd = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(fd, 1);
  close(fd);
  int ends = 0;
  Options options{.command = command,
                  .make_tool = [&] { return std::make_unique<TestTool>(planner, ran.cells); },
                  .on_program_end = [&](auto&, auto&) { ends++; },
                  .finish = [&](const Outcome& outcome) -> Result<int> {
                    ran.stats = outcome.stats;
                    return outcome.status;
                  }};
  auto status = run(options);
  dup2(stdout_before, 1);
  close(stdout_before);
  EXPECT_TRUE(status) << (status ? "" : status.error().what);
  if (status) ran.status = *status;
  EXPECT_EQ(ends, 1);
  ran.output = contents(out);
  return ran;
}

Ran run_same(const Words& command, const Planner& planner) {
  Ran native = run_native(command), ours = run_weir(command, planner);
  EXPECT_EQ(ours.status, native.status);
  EXPECT_EQ(ours.output, native.output);
  EXPECT_EQ(ours.stats.not_supported, 0u);
  return ours;
}

Op add(Counter c, int64_t value = 1) { return {.kind = Op::AddCounter, .counter = c, .value = value}; }

// Plans for the function at an address only.
Planner at(uint64_t address, const Planner& planner) {
  return [=](const Subject& s, Counters& c, Plan& p) {
    if (s.function.entry.value == address) planner(s, c, p);
  };
}

// Entries of functions, by address.
struct Entries {
  std::map<uint64_t, Counter> counters;

  Planner planner() {
    return [this](const Subject& s, Counters& c, Plan& p) {
      Counter counter = c.allocate();
      counters[s.function.entry.value] = counter;
      p.insert(Where::Entry, 0, {add(counter)});
    };
  }
  uint64_t count(const Ran& ran, uint64_t address) const {
    return counters.contains(address) ? ran.cells.at(counters.at(address).index) : 0;
  }
};

// Counters of every block, and of what comes and goes there.
struct Flow {
  struct OfBlock {
    AppPc begin, end;
    BlockEnd ends;
    Counter block, before_last;
    std::optional<Counter> taken, fall;  // of branches
    std::optional<Counter> site;         // of calls: of the block behind
  };
  std::vector<OfBlock> blocks;

  Planner planner() {
    return [this](const Subject& s, Counters& c, Plan& p) { plan(s.function, c, p); };
  }
  void plan(const x86::Function& f, Counters& c, Plan& p) {
    auto count = [&](Where where, uint32_t index) {
      Counter counter = c.allocate();
      p.insert(where, index, {add(counter)});
      return counter;
    };
    for (BlockId b = 0; b < f.blocks.size(); b++) {
      const Block& block = f.blocks[b];
      OfBlock o{
          block.begin, block.end, block.ends, count(Where::Block, b), count(Where::Before, block.first + block.count - 1),
          {},          {},        {}};
      if (block.ends == BlockEnd::Branch) o.taken = count(Where::Taken, b), o.fall = count(Where::FallThrough, b);
      if (block.ends == BlockEnd::Jump) o.taken = count(Where::Taken, b);
      if (block.ends == BlockEnd::FallThrough) o.fall = count(Where::FallThrough, b);
      if (block.ends == BlockEnd::Call && block.fallthrough != no_block)
        o.site = count(Where::ReturnSite, block.fallthrough);
      blocks.push_back(o);
    }
  }

  // How often calls return: some do not; a setjmp does more often than it is called.
  enum Returns { AtMostOnce, Once, AnyNumber };
  void check(const Ran& ran, Returns returns) const {
    uint64_t executed = 0, branches = 0;
    // By return address: a function may be translated in parts that have code in common, and the call from one part come
    // back to another.
    struct Calls {
      uint64_t calls = 0, returns = 0;
    };
    std::map<AppPc, Calls> calls;
    auto of = [&](Counter c) { return ran.cells.at(c.index); };
    for (const OfBlock& b : blocks) {
      uint64_t n = of(b.block);
      executed += n > 0;
      SCOPED_TRACE(fmt::format("block {:#x}", b.begin.value));
      EXPECT_EQ(of(b.before_last), n);
      branches += b.ends == BlockEnd::Branch && n > 0;
      if (b.taken || b.fall) {
        EXPECT_EQ((b.taken ? of(*b.taken) : 0) + (b.fall ? of(*b.fall) : 0), n);
      }
      if (b.site) calls[b.end].calls += n, calls[b.end].returns += of(*b.site);
    }
    for (auto& [pc, c] : calls)
      EXPECT_TRUE(returns == AnyNumber || c.returns == c.calls || (returns == AtMostOnce && c.returns < c.calls))
          << fmt::format("{} calls, {} returns to {:#x}", c.calls, c.returns, pc.value);
    EXPECT_GT(executed, 3u);
    EXPECT_GT(branches, 1u);
    EXPECT_GT(calls.size(), 0u);
  }
};

// All kinds of operations before every instruction and behind every plain one, at every entry, edge and return site: of no
// use, and the program must not notice.
void plan_everything(const Subject& s, Counters& c, Plan& p) {
  const x86::Function& f = s.function;
  Counter one = c.allocate(), two = c.allocate();
  uint32_t turn = static_cast<uint32_t>(f.entry.value);
  auto insert = [&](Where where, uint32_t index) {
    auto value = static_cast<int64_t>(index);
    switch (turn++ % 6) {
      case 0: return p.insert(where, index, {add(one)});
      case 1: return p.insert(where, index, {add(one, int64_t{1} << 40), {.kind = Op::AddClock, .value = -value}});
      case 2:
        return p.insert(where, index,
                        {{.kind = Op::GetRegister, .reg = x86::Gpr(turn / 6 % 16)},
                         {.kind = Op::StoreCounter, .counter = two},
                         add(one, -1)});
      case 3:
        return p.insert(where, index,
                        {{.kind = Op::LoadCounter, .temp = Temp::A, .counter = one},
                         {.kind = Op::SkipUnless, .temp = Temp::A, .count = 2, .value = value},
                         {.kind = Op::Add, .temp = Temp::A, .value = value},
                         {.kind = Op::StoreCounter, .temp = Temp::A, .counter = two}});
      case 4:  // read at the stack pointer, where there is something to be read always
        return p.insert(where, index,
                        {{.kind = Op::GetRegister, .temp = Temp::B, .reg = x86::RSP},
                         {.kind = Op::Load, .temp = Temp::A, .other = Temp::B},
                         {.kind = Op::Add, .temp = Temp::B, .value = INT64_MAX},
                         {.kind = Op::StoreCounter, .temp = Temp::B, .counter = two}});
      default:
        return p.insert(where, index,
                        {{.kind = Op::Set, .temp = Temp::A, .value = value},
                         {.kind = Op::Set, .temp = Temp::B, .value = -1},
                         add(two)});
    }
  };
  insert(Where::Entry, 0);
  for (BlockId b = 0; b < f.blocks.size(); b++) {
    const Block& block = f.blocks[b];
    insert(Where::Block, b);
    for (uint32_t i = block.first; i < block.first + block.count; i++) {
      insert(Where::Before, i);
      if (block.ends == BlockEnd::FallThrough || i + 1 < block.first + block.count) insert(Where::After, i);
    }
    if (block.ends == BlockEnd::Branch || block.ends == BlockEnd::Jump) insert(Where::Taken, b);
    if (block.fallthrough != no_block) insert(Where::FallThrough, b);
    if (block.ends == BlockEnd::Call && block.fallthrough != no_block) insert(Where::ReturnSite, block.fallthrough);
  }
}

// The runtime's routine, before every n-th instruction: it takes a while.
Planner plan_calls(uint32_t every) {
  return [=](const Subject& s, Counters& c, Plan& p) {
    Counter counter = c.allocate();
    for (uint32_t i = 0; i < s.function.insns.size(); i++)
      if ((i + s.function.entry.value) % every == 0)
        p.insert(Where::Before, i,
                 {{.kind = Op::Set, .temp = Temp::A, .value = counter.index},
                  {.kind = Op::Set, .temp = Temp::B, .value = 3},
                  {.kind = Op::Call, .value = int64_t(rt::Routine::AddToCounter)}});
  };
}

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

// ---- Operations ----------------------------------------------------------------------------------------------------

const char* const witness_c = R"(
#include <stdio.h>
unsigned long seen_rsp, block[4] = {11, 22, 33, 44};
asm("witness: mov %rsp, seen_rsp(%rip); mov 8(%rdi), %rax; ret");
unsigned long witness(unsigned long*, long);
int main() {
  unsigned long last = 0;
  for (long i = 0; i < 10; i++) last = witness(block, i);
  printf("%lu %lu %lu %lu\n", (unsigned long)block, seen_rsp, last, block[3]);
  return 0;
}
)";

struct Witness {
  Program p = compile("witness", witness_c);
  uint64_t block, rsp, last, third;

  std::vector<uint64_t> run(std::vector<Op> (*ops)(std::span<const Counter>)) {
    Ran ran =
        run_weir({p.path}, at(p.symbols.at("witness"), [&](const Subject&, Counters& c, Plan& plan) {
                   std::vector<Counter> counters;
                   for (int i = 0; i < 8; i++) counters.push_back(c.allocate());
                   std::vector<Op> list = ops(counters);
                   list.resize(8, {.kind = Op::Set, .temp = Temp::A});
                   plan.insert(Where::Entry, 0, {list[0], list[1], list[2], list[3], list[4], list[5], list[6], list[7]});
                 }));
    EXPECT_EQ(ran.status, 0);
    EXPECT_EQ(sscanf(ran.output.c_str(), "%lu %lu %lu %lu", &block, &rsp, &last, &third), 4);
    return {ran.cells.begin() + rt::first_counter, ran.cells.end()};
  }
};

TEST(Probes, Registers) {
  Witness w;
  auto cells = w.run([](std::span<const Counter> c) {
    return std::vector<Op>{{.kind = Op::GetRegister, .temp = Temp::A, .reg = x86::RSP},
                           {.kind = Op::StoreCounter, .temp = Temp::A, .counter = c[0]},
                           {.kind = Op::GetRegister, .temp = Temp::B, .reg = x86::RDI},
                           {.kind = Op::StoreCounter, .temp = Temp::B, .counter = c[1]},
                           {.kind = Op::GetRegister, .temp = Temp::B, .reg = x86::RSI},
                           {.kind = Op::StoreCounter, .temp = Temp::B, .counter = c[2]}};
  });
  EXPECT_EQ(cells[0], w.rsp);
  EXPECT_EQ(cells[1], w.block);
  EXPECT_EQ(cells[2], 9u);
  EXPECT_EQ(w.last, 22u);
}

TEST(Probes, Memory) {
  Witness w;
  auto cells = w.run([](std::span<const Counter> c) {
    return std::vector<Op>{{.kind = Op::GetRegister, .temp = Temp::B, .reg = x86::RDI},
                           {.kind = Op::Load, .temp = Temp::A, .other = Temp::B, .value = 16},
                           {.kind = Op::StoreCounter, .temp = Temp::A, .counter = c[0]},
                           {.kind = Op::Add, .temp = Temp::A, .value = -3},
                           {.kind = Op::Store, .temp = Temp::A, .other = Temp::B, .value = 24},
                           {.kind = Op::Load, .temp = Temp::B, .other = Temp::B, .value = 24},
                           {.kind = Op::StoreCounter, .temp = Temp::B, .counter = c[1]}};
  });
  EXPECT_EQ(cells[0], 33u);
  EXPECT_EQ(cells[1], 30u);
  EXPECT_EQ(w.third, 30u);
}

TEST(Probes, CountersAndSkips) {
  Witness w;
  auto cells = w.run([](std::span<const Counter> c) {
    return std::vector<Op>{{.kind = Op::LoadCounter, .temp = Temp::A, .counter = c[0]},
                           {.kind = Op::Add, .temp = Temp::A, .value = 5},
                           {.kind = Op::StoreCounter, .temp = Temp::A, .counter = c[0]},
                           {.kind = Op::GetRegister, .temp = Temp::B, .reg = x86::RSI},
                           {.kind = Op::SkipUnless, .temp = Temp::B, .count = 1, .value = 4},
                           add(c[1], 100),
                           {.kind = Op::SkipUnless, .temp = Temp::A, .count = 1, .value = 5},
                           add(c[2], 7)};
  });
  EXPECT_EQ(cells[0], 50u);
  EXPECT_EQ(cells[1], 100u);  // once, when rsi is 4
  EXPECT_EQ(cells[2], 7u);    // once, the first time
  auto several = w.run([](std::span<const Counter> c) {
    return std::vector<Op>{{.kind = Op::GetRegister, .temp = Temp::A, .reg = x86::RSI},
                           {.kind = Op::SkipUnless, .temp = Temp::A, .count = 6, .value = 9},
                           add(c[0]),
                           add(c[1]),
                           {.kind = Op::SkipUnless, .temp = Temp::A, .count = 2, .value = 8},
                           add(c[2]),
                           add(c[3]),
                           add(c[4])};
  });
  EXPECT_EQ(std::vector(several.begin(), several.begin() + 5), (std::vector<uint64_t>{1, 1, 0, 0, 1}));
}

TEST(Probes, AdditionsOfAnySize) {
  Witness w;
  auto cells = w.run([](std::span<const Counter> c) {
    return std::vector<Op>{add(c[0], 1),
                           add(c[1], -1),
                           add(c[2], int64_t{1} << 40),
                           add(c[3], -(int64_t{1} << 50) - 3),
                           add(c[4], INT32_MIN),
                           add(c[5], INT64_MIN + 1),
                           add(c[6], 128),
                           add(c[7], 0x80000000)};
  });
  uint64_t expected[] = {10, uint64_t(-10), 10ul << 40,       uint64_t(-(10l << 50) - 30), uint64_t(10l * INT32_MIN),
                         10, 1280,          10 * 0x80000000ul};
  for (int i = 0; i < 8; i++) EXPECT_EQ(cells[i], expected[i]) << i;
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

TEST(Probes, Routines) {
  Witness w;
  auto cells = w.run([](std::span<const Counter> c) {
    return std::vector<Op>{{.kind = Op::Set, .temp = Temp::A, .value = c[3].index},
                           {.kind = Op::GetRegister, .temp = Temp::B, .reg = x86::RSI},
                           {.kind = Op::Call, .value = int64_t(rt::Routine::AddToCounter)},
                           {.kind = Op::StoreCounter, .temp = Temp::B, .counter = c[1]}};
  });
  EXPECT_EQ(cells[3], 45u);
  EXPECT_EQ(cells[1], 9u);
  EXPECT_EQ(w.last, 22u);
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
