// What restoring a call sequence costs: over the depth of the stack and the number of frames that changed since the last sample, for
// our walker in full and incrementally, and for libunwind. On real stacks of this process, from inside it.
//
//   walk_bench [--quick]
//
// A stack is `depth` calls deep; the innermost `changed` of them alternate between two sets of functions, so that as many frames are
// others at each sample. "cold": the caches were filled with something else before each sample.
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#include <unistd.h>
#include <x86intrin.h>

#include <chrono>
#include <cstdio>
#include <cstring>

#include "../unit/own_code.h"
#include "rt/own_memory.h"

using namespace weir;
using namespace weir::rt;

// In walker.cc, compiled as in the sampler.
namespace weir::rt {
extern template class Walk<OwnMemory>;
extern template Sample restore(Trace&, const Code&, const Stack&, const State&, const Options&, OwnMemory&, uint64_t);
}  // namespace weir::rt

namespace {

enum Way { Incremental, IncrementalCold, Full, FullRecord, Step_, Backtrace, WayCount };
const char* const names[] = {"incremental", "cold", "full", "full, with record", "unw_step", "unw_backtrace"};

double ticks_of_nanosecond = 1;
volatile int sink;
std::vector<char> garbage(8 << 20);

struct Bench {
  test::OwnCode own;
  test::Memory memory{32768, 1 << 20};
  Stack stack = test::own_stack();
  KnownStack known{stack.low, stack.low, stack.high};
  Options options{.use = {true, false, false}};
  Way way = Incremental;
  uint64_t unwound = 0;
  std::vector<uint64_t> ticks;  // of each sample
  pid_t pid = getpid();
  bool is_warm = false;  // the first samples do not count

  // As the handler does it; Weir has read all before.
  uint64_t sample(const Code& code, const State& top, OwnMemory& own_memory) {
    Sample s = restore(memory.trace, code, stack, top, options, own_memory);
    memory.queue.read = memory.queue.written;
    Records records(memory.queue, memory.words.data(), memory.words.size());
    if (records.has_room(s.depth)) records.put(s, top.pc, 1);
    return s.unwound;
  }

  [[gnu::noinline]] uint64_t unwind() {
    Code code = own.code();
    State top;
    asm volatile("leaq (%%rip), %0; movq %%rsp, %1; movq %%rbp, %2" : "=r"(top.pc), "=r"(top.sp), "=r"(top.bp));
    top.is_exact = true, top.registers = nullptr;
    if (way == IncrementalCold) {
      for (size_t i = 0; i < garbage.size(); i += 64) garbage[i]++;
    }
    uint64_t begin = __rdtsc(), steps = 0;
    OwnMemory own_memory(known, top.sp, static_cast<uint32_t>(pid));
    switch (way) {
      case Incremental:
      case IncrementalCold: {
        steps = sample(code, top, own_memory);
        break;
      }
      case Full: {
        static constexpr Map none{};
        Stepper<OwnMemory> stepper(code, stack, options.use, &memory.trace.known, own_memory);
        Walk<OwnMemory> walk(stepper, none, memory.trace.fresh, memory.trace.capacity, 100, own_memory);
        rt::Step step;
        walk.run(top, stepper.step(top, step), step);
        steps = walk.unwound;
        break;
      }
      case FullRecord:
        forget(memory.trace);
        steps = sample(code, top, own_memory);
        break;
      case Step_: {
        unw_context_t context;
        unw_cursor_t cursor;
        unw_getcontext(&context);
        unw_init_local(&cursor, &context);
        while (unw_step(&cursor) > 0) steps++;
        break;
      }
      default: {
        static void* addresses[32768];
        steps = static_cast<uint64_t>(unw_backtrace(addresses, 32768));
      }
    }
    uint64_t spent = __rdtsc() - begin;
    if (is_warm) ticks.push_back(spent), unwound += steps;
    return steps;
  }
};

// Frames of usual sizes; every eighth has a frame pointer and allocates.
template <int branch>
[[gnu::noinline]] int descend(Bench& b, int n) {
  volatile char locals[40];
  locals[0] = static_cast<char>(n + branch);  // (otherwise the compiler makes one function of both)
  if (n <= 1) {
    sink = static_cast<int>(b.unwind());
    return locals[0];
  }
  if (n % 8 == 0) {
    auto* p = static_cast<volatile char*>(alloca(static_cast<size_t>(16 + n % 3 * 16)));
    p[0] = 1;
    sink = descend<branch>(b, n - 1) + p[0];
  } else {
    sink = descend<branch>(b, n - 1);
  }
  return locals[0];
}

// The unchanged part, then many samples with other innermost frames each.
[[gnu::noinline]] int hold(Bench& b, int n, int changed, int repeats) {
  volatile char locals[40];
  locals[0] = static_cast<char>(n);
  if (n > 0) {
    sink = hold(b, n - 1, changed, repeats);
    return locals[0];
  }
  for (int i = 0; i < repeats; i++) {
    b.is_warm = i >= repeats / 5;
    sink = i % 2 ? descend<1>(b, changed) : descend<2>(b, changed);
  }
  return locals[0];
}

struct Cost {
  double ns, unwound;
};

Cost measure(Bench& b, Way way, int depth, int changed, double seconds) {
  int own = 8;  // main and what leads to `hold`
  double each = way == Step_ ? depth * 400e-9 : way == IncrementalCold ? 1e-3 : depth * 30e-9 + 1e-6;
  int repeats = std::clamp(static_cast<int>(seconds / each), 20, 200'000);
  b.way = way, b.unwound = 0;
  b.ticks.clear(), b.ticks.reserve(static_cast<size_t>(repeats));
  hold(b, std::max(0, depth - changed - own), changed, repeats);
  auto count = static_cast<double>(b.ticks.size());
  // The median: others use the machine, too.
  std::ranges::nth_element(b.ticks, b.ticks.begin() + static_cast<ptrdiff_t>(b.ticks.size() / 2));
  return {static_cast<double>(b.ticks[b.ticks.size() / 2]) / ticks_of_nanosecond, static_cast<double>(b.unwound) / count};
}

}  // namespace

int main(int argc, char** argv) {
  bool is_quick = argc > 1 && !strcmp(argv[1], "--quick");
  double seconds = is_quick ? 0.02 : 0.2;
  unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_PER_THREAD);
  auto begin = std::chrono::steady_clock::now();
  uint64_t ticks = __rdtsc();
  while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(50)) {}
  ticks_of_nanosecond = static_cast<double>(__rdtsc() - ticks) / 50e6;

  auto bench = std::make_unique<Bench>();
  printf("Nanoseconds a sample, the median.\n\n| depth | changed | frames unwound |");
  for (const char* name : names) printf(" %s |", name);
  printf(" full ÷ incremental | unw_step ÷ incremental | allowed: 500 + 3 a frame |\n|---|---|---|");
  for (int i = 0; i < WayCount + 3; i++) printf("---|");
  printf("\n");
  for (int depth : {10, 100, 1000, 10000})
    for (int changed : {2, 8, depth}) {
      if (changed == depth && depth == 10) changed = 3;  // (the rest is main and this benchmark)
      Cost results[WayCount];
      for (int way = 0; way < WayCount; way++)
        results[way] = measure(*bench, static_cast<Way>(way), depth, changed, seconds);
      printf("| %d | %s | %.1f |", depth, changed == depth ? "all" : std::to_string(changed).c_str(), results[0].unwound);
      for (const Cost& r : results) printf(" %.0f |", r.ns);
      double own = results[Incremental].ns;
      bool is_measured = changed < 10;
      printf(" %.1f | %.0f | %s |\n", results[Full].ns / own, results[Step_].ns / own,
             !is_measured               ? "–"
             : own <= 500 + 3.0 * depth ? "yes"
                                        : "no");
      fflush(stdout);
    }
}
