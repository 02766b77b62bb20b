// The walker on this very process: against glibc's backtrace() from wherever a program can be, and against itself (in full and
// incrementally) at every single instruction of a workload, and under a fast timer.
#include <execinfo.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <regex>
#include <stdexcept>
#include <string>
#include <thread>

#include "own_code.h"

namespace weir::rt {
namespace {

using test::OwnCode;

const Options precise{.use = {true, false, false}};

OwnCode& own_code() {
  static OwnCode code;
  return code;
}

std::vector<uint64_t> frames_of(const Map& m) {
  std::vector<uint64_t> out;
  for (uint32_t i = m.count; i-- > 0;)
    if (!(m.frames[i].flags & KeptFrame::Silent)) out.push_back(m.links[i].value);
  return out;
}

// ---- Against backtrace(), from here -----------------------------------------------------------------------------------
int compared = 0;

// Two ways of finding who called the function that calls this.
[[gnu::noinline]] void compare_with_backtrace(const Stack& stack = {}) {
  static test::Memory* memory = new test::Memory(32768);
  ucontext_t here;
  getcontext(&here);
  std::vector<void*> theirs(32768);
  theirs.resize(static_cast<size_t>(backtrace(theirs.data(), static_cast<int>(theirs.size()))));
  GuardedMemory guarded;
  Sample s = memory->sample(own_code().code(), stack, test::state_of(here), precise, guarded);
  EXPECT_EQ(s.end, Stop::Complete);
  std::vector<uint64_t> ours = frames_of(*s.map), wanted;
  for (size_t i = 1; i < theirs.size(); i++) wanted.push_back(reinterpret_cast<uint64_t>(theirs[i]));
  EXPECT_EQ(ours, wanted);
  EXPECT_EQ(verify(memory->trace, s, own_code().code(), stack, test::state_of(here), precise, guarded), Difference::None);
  compared++;
}

volatile int sink;  // what is stored here after a call keeps it from becoming a jump

[[gnu::noinline]] int recurse(int n, const std::function<void()>& f) {
  if (n == 0) f();
  else recurse(n - 1, f);
  sink = n;
  return n;
}

[[gnu::noinline]] int allocate(int n, const std::function<void()>& f) {
  auto* p = static_cast<volatile char*>(alloca(static_cast<size_t>(16 + n * 40)));
  p[0] = static_cast<char>(n);
  if (n == 0) return f(), p[0];
  return allocate(n - 1, f) + p[0];
}

[[gnu::noinline]] int align(int n, const std::function<void()>& f) {
  alignas(128) volatile char p[128];
  p[n] = 1;
  if (n == 0) return f(), p[0];
  sink = align(n - 1, f);
  return p[n];
}

TEST(Backtrace, Plain) {
  compare_with_backtrace();
  compare_with_backtrace(test::own_stack());
}

TEST(Backtrace, DeepRecursion) {
  for (int depth : {1, 10, 1000, 20000}) recurse(depth, [] { compare_with_backtrace(test::own_stack()); });
}

TEST(Backtrace, FramesWithFramePointers) {
  for (int depth : {0, 3, 50}) {
    allocate(depth, [] { compare_with_backtrace(); });
    align(depth, [] { compare_with_backtrace(); });
    align(depth, [&] { allocate(depth, [] { recurse(3, [] { compare_with_backtrace(); }); }); });
  }
}

TEST(Backtrace, Callbacks) {
  int numbers[] = {3, 1, 2};
  qsort(numbers, 3, sizeof(int), [](const void* a, const void* b) {
    compare_with_backtrace();
    return *static_cast<const int*>(a) - *static_cast<const int*>(b);
  });
}

TEST(Backtrace, Exceptions) {
  struct Guard {
    ~Guard() { compare_with_backtrace(); }  // while the stack is unwound
  };
  for (int i = 0; i < 3; i++) {
    try {
      Guard guard;
      recurse(20, [] { throw std::runtime_error("x"); });
    } catch (const std::exception&) {
      recurse(i, [] { compare_with_backtrace(); });
    }
    compare_with_backtrace();
  }
}

TEST(Backtrace, Threads) {
  std::thread([] { recurse(5, [] { compare_with_backtrace(test::own_stack()); }); }).join();
}

void raise_with(int flags, const std::function<void()>& f) {
  static std::function<void()> inside;
  inside = f;
  struct sigaction action{}, old;
  action.sa_flags = flags | SA_SIGINFO;
  action.sa_sigaction = [](int, siginfo_t*, void*) { inside(); };
  sigaction(SIGUSR1, &action, &old);
  raise(SIGUSR1);
  sigaction(SIGUSR1, &old, nullptr);
}

TEST(Backtrace, SignalHandlers) {
  auto compare = [] { recurse(3, [] { compare_with_backtrace(); }); };
  raise_with(0, compare);
  recurse(10, [&] { raise_with(0, compare); });
  recurse(10, [&] { raise_with(SA_NODEFER, [&] { raise_with(SA_NODEFER, compare); }); });
}

TEST(Backtrace, AlternateStacks) {
  // Above and below the thread's own: the thread's lies where it lies, these two on both sides of it.
  std::thread([] {
    for (uint64_t hint : {uint64_t{0x10000000}, uint64_t{0x7fff'f000'0000}}) {
      void* memory =
          mmap(reinterpret_cast<void*>(hint), 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      ASSERT_NE(memory, MAP_FAILED);
      stack_t stack{memory, 0, 1 << 20}, old;
      sigaltstack(&stack, &old);
      for (int i = 0; i < 3; i++)
        recurse(10 + i,
                [] { raise_with(SA_ONSTACK, [] { recurse(3, [] { compare_with_backtrace(test::own_stack()); }); }); });
      compare_with_backtrace(test::own_stack());
      sigaltstack(&old, nullptr);
      munmap(memory, 1 << 20);
    }
  }).join();
}

TEST(Backtrace, Coroutines) {
  static ucontext_t main_context, contexts[6];
  static std::vector<std::vector<char>> stacks(6, std::vector<char>(1 << 19));
  static int finished = 0;
  for (int i = 0; i < 6; i++) {
    getcontext(&contexts[i]);
    contexts[i].uc_stack = {stacks[static_cast<size_t>(i)].data(), 0, 1 << 19};
    contexts[i].uc_link = &main_context;
    makecontext(&contexts[i], reinterpret_cast<void (*)()>(+[](int number) {
      recurse(number * 3, [number] {
        for (int n = 0; n < 20; n++) {
          recurse(n, [] { compare_with_backtrace(); });
          swapcontext(&contexts[number], &main_context);
        }
      });
      finished++;
    }),
                1, i);
  }
  for (int turn = 0; turn < 21; turn++)
    for (int i = 0; i < 6; i++) {
      swapcontext(&main_context, &contexts[i]);
      if (turn == 20) break;
      compare_with_backtrace();
    }
  EXPECT_GE(finished, 1);
}

// ---- At every instruction ---------------------------------------------------------------------------------------------
// What a sample finds, compared with a full walk each time, and now and then with backtrace().
struct Sampler {
  test::Memory memory{32768, 1 << 20};
  Options options = precise;
  Stack stack;
  uint64_t differences[8] = {}, against_backtrace = 0, wrong = 0;
  uint64_t every = 64;

  void take(const ucontext_t& context) {
    State top = test::state_of(context);
    GuardedMemory guarded;
    Code code = own_code().code();
    Sample s = memory.sample(code, stack, top, options, guarded);
    differences[static_cast<int>(verify(memory.trace, s, code, stack, top, options, guarded))]++;
    if (s.end == Stop::Complete && memory.trace.counts.samples % every == 0) compare(top, s);
  }

  void compare(const State& top, const Sample& s) {
    static void* theirs[32768];
    int n = backtrace(theirs, 32768), i = 0;
    while (i < n && reinterpret_cast<uint64_t>(theirs[i]) != top.pc) i++;
    if (i == n) return;
    against_backtrace++;
    bool is_same = true;
    for (uint32_t k = s.map->count; k-- > 0 && is_same;)
      if (!(s.map->frames[k].flags & KeptFrame::Silent))
        is_same = ++i < n && reinterpret_cast<uint64_t>(theirs[i]) == s.map->links[k].value;
    wrong += !is_same || i + 1 != n;
  }

  void report(const char* name) const {
    const Counts& c = memory.trace.counts;
    printf("%s: %lu samples, %.1f frames, %.2f unwound each; cut off %lu; %lu compared with backtrace(); %u nodes\n", name,
           c.samples, double(c.frames) / double(c.samples), double(c.unwound) / double(c.samples),
           c.samples - c.ended[static_cast<int>(Stop::Complete)], against_backtrace, memory.tree.size());
    for (int i = 2; i < static_cast<int>(Stop::Count); i++)
      if (c.ended[i]) printf("  ended by %d: %lu\n", i, c.ended[i]);
  }
};

Sampler* sampler = nullptr;

void install(int signal, void (*handler)(int, siginfo_t*, void*), int flags) {
  struct sigaction action{};
  action.sa_flags = SA_SIGINFO | flags;
  action.sa_sigaction = handler;
  sigfillset(&action.sa_mask);
  sigdelset(&action.sa_mask, SIGSEGV);
  sigdelset(&action.sa_mask, SIGBUS);
  sigaction(signal, &action, nullptr);
}

[[gnu::noinline]] int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

void work(int size) {
  std::vector<std::string> words;
  for (int i = 0; i < size; i++) words.push_back("word" + std::to_string(i * 7919 % 1009));
  std::sort(words.begin(), words.end(), [](const std::string& a, const std::string& b) { return a.compare(b) > 0; });
  std::map<std::string, int> counts;
  for (const std::string& w : words) counts[w] += fib(static_cast<int>(w.size()) - 1);
  for (int i = 0; i < size / 16 + 1; i++) {
    try {
      recurse(i % 20, [&] {
        allocate(i % 7, [&] {
          if (i % 2) throw std::out_of_range("here");
        });
      });
    } catch (const std::exception& e) {
      counts[e.what()]++;
    }
    align(i % 5, [&] { counts["aligned"] += i; });
  }
  char text[256];
  for (int i = 0; i < size / 4 + 1; i++) snprintf(text, sizeof text, "%d %.3f %s", i, i / 3.0, words[0].c_str());
  for (int i = 0; i < size / 32; i++)
    counts[text] += std::regex_search(words[static_cast<size_t>(i)], std::regex("w[a-z]+([0-9]+)x?"));
  raise_with(0, [&] { counts["raised"] += fib(5); });
}

void set_trap(bool on) {
  if (on) asm volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
  else asm volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
}

TEST(EveryInstruction, IncrementalIsFull) {
  backtrace(std::vector<void*>(4).data(), 4);  // (loads what it needs)
  work(1);
  Sampler own;
  own.stack = test::own_stack();
  sampler = &own;
  own_code();
  install(SIGTRAP, [](int, siginfo_t*, void* context) { sampler->take(*static_cast<ucontext_t*>(context)); }, 0);
  set_trap(true);
  work(32);
  set_trap(false);
  signal(SIGTRAP, SIG_DFL);
  own.report("every instruction");
  const Counts& c = own.memory.trace.counts;
  EXPECT_GT(c.samples, 100'000u);
  EXPECT_EQ(own.differences[0], c.samples);
  EXPECT_EQ(own.wrong, 0u);
  EXPECT_GT(own.against_backtrace, 1000u);
  EXPECT_LT(c.samples - c.ended[static_cast<int>(Stop::Complete)], c.samples / 1000);
  EXPECT_LT(c.unwound, c.frames / 2);
}

// With frame pointers and guesses allowed nothing of what call frame information says changes, and walks that it does not finish
// go on.
TEST(EveryInstruction, WithFallBacks) {
  Sampler own;
  own.options.use = {true, true, true};
  own.stack = test::own_stack();
  sampler = &own;
  install(SIGTRAP, [](int, siginfo_t*, void* context) { sampler->take(*static_cast<ucontext_t*>(context)); }, 0);
  set_trap(true);
  work(8);
  set_trap(false);
  signal(SIGTRAP, SIG_DFL);
  own.report("with fall-backs");
  EXPECT_EQ(own.differences[0], own.memory.trace.counts.samples);
  EXPECT_EQ(own.wrong, 0u);
}

// ---- Under a timer ----------------------------------------------------------------------------------------------------
TEST(Timer, IncrementalIsFull) {
  test::survive_reads();
  Sampler own;
  own.every = 4;
  own.stack = test::own_stack();
  sampler = &own;
  install(SIGPROF, [](int, siginfo_t*, void* context) { sampler->take(*static_cast<ucontext_t*>(context)); }, SA_RESTART);
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGPROF;
  event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
  timer_t timer;
  ASSERT_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
  itimerspec times{{0, 100'000}, {0, 100'000}};
  timer_settime(timer, 0, &times, nullptr);
  auto end = time(nullptr) + 2;
  while (time(nullptr) < end) recurse(200, [] { work(60); });
  timer_delete(timer);
  signal(SIGPROF, SIG_IGN);
  own.report("under a timer");
  const Counts& c = own.memory.trace.counts;
  EXPECT_GT(c.samples, 1000u);
  EXPECT_EQ(own.differences[0], c.samples);
  EXPECT_EQ(own.wrong, 0u);
  EXPECT_LT(c.unwound, c.frames / 4);
}

// ---- Without call frame information -----------------------------------------------------------------------------------
TEST(FallBacks, FramePointersAndGuesses) {
  test::survive_reads();
  for (Use use : {Use{false, true, false}, Use{false, false, true}, Use{false, true, true}}) {
    Sampler own;
    own.options.use = use;
    own.stack = test::own_stack();
    own.every = UINT64_MAX;
    sampler = &own;
    install(SIGUSR2, [](int, siginfo_t*, void* context) { sampler->take(*static_cast<ucontext_t*>(context)); }, 0);
    for (int i = 0; i < 20; i++) allocate(i, [] { raise(SIGUSR2); });
    const Counts& c = own.memory.trace.counts;
    EXPECT_EQ(c.samples, 20u);
    EXPECT_EQ(own.differences[0], c.samples);
    EXPECT_TRUE(c.guessed > 0 || use.frame_pointers);  // (these may do for all)
    EXPECT_EQ(c.by_frame_pointer > 0, use.frame_pointers);
  }
}

TEST(Guarded, ReadsSurvive) {
  test::survive_reads();
  GuardedMemory memory;
  uint64_t word = 7;
  EXPECT_FALSE(memory.read(8, word));
  EXPECT_FALSE(memory.read(0xdead'0000'0000'0000, word));  // not canonical
  uint64_t here = 42;
  EXPECT_TRUE(memory.read(reinterpret_cast<uint64_t>(&here), word));
  EXPECT_EQ(word, 42u);
  // A stack whose end is not there.
  test::Memory own;
  void* pages = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(static_cast<char*>(pages) + 4096, 4096);
  ucontext_t context;
  getcontext(&context);
  State top = test::state_of(context);
  top.sp = reinterpret_cast<uint64_t>(pages) + 4096 - 8;
  Sample s = own.sample(own_code().code(), {}, top, precise, memory);
  EXPECT_NE(s.end, Stop::Complete);
  munmap(pages, 4096);
}

}  // namespace
}  // namespace weir::rt
