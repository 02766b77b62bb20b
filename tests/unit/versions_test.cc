// Calls, returns and jumps stay within a version; a thread changes where a probe says so.
#include "probes_fixture.h"

namespace weir::engine {
namespace {

using instrument::Version;

const char* const calls_c = R"(
#include <stdio.h>
#include <setjmp.h>
#include <stdlib.h>
#define FUNCTION __attribute__((noinline, noclone))
static jmp_buf back;
static volatile long sum;
FUNCTION long leaf(long x) { asm volatile(""); return x + 1; }
FUNCTION long twice(long x) { return leaf(x) + leaf(x + 1); }
FUNCTION long through(long (*f)(long), long x) { return f(x) * 2 + 1; }
FUNCTION void jumps(long x) { if (leaf(x) % 3 == 0) longjmp(back, 1); sum += x; }
int main() {
  for (long i = 0; i < 100; i++) {
    sum += twice(i);
    sum += through(twice, i);
    if (setjmp(back) == 0) jumps(i);
    else sum--;
  }
  printf("%ld\n", sum);
  return 0;
}
)";

// Counts entries of functions, and goes to another version at some of them.
class Changes : public instrument::Tool {
 public:
  struct Change {
    uint64_t function;
    Version from, to;
    int64_t at;  // which time
  };
  // What was counted, by function and version.
  using Counts = std::map<std::pair<uint64_t, Version>, uint64_t>;

  Changes(std::vector<Change> changes, Counts& counts) : changes_(std::move(changes)), counts_(counts) {}
  std::unique_ptr<Tool> copy() const override { return std::make_unique<Changes>(*this); }
  Version versions() const override { return 3; }
  void plan(const Subject& s, Counters& counters, Plan& plan) override {
    uint64_t entry = s.function.entry.value;
    Counter counter = counters.allocate();
    counters_.push_back({{entry, s.version}, counter});
    plan.insert(Where::Entry, 0, {{.kind = Op::AddCounter, .counter = counter, .value = 1}});
    for (const Change& c : changes_)
      if (c.function == entry && c.from == s.version)
        plan.insert(Where::Entry, 0,
                    {{.kind = Op::LoadCounter, .temp = Temp::A, .counter = counter},
                     {.kind = Op::SkipUnless, .temp = Temp::A, .count = 1, .value = c.at},
                     {.kind = Op::GoTo, .value = c.to}});
  }
  void collect(const ThreadData& thread) override {
    for (auto& [key, counter] : counters_)
      if (counter.index < thread.cells.size()) counts_[key] += thread.cells[counter.index];
  }

 private:
  std::vector<Change> changes_;
  Counts& counts_;
  std::vector<std::pair<std::pair<uint64_t, Version>, Counter>> counters_;
};

// What is to be counted: the program above, by hand.
struct Model {
  const Program& p;
  const std::vector<Changes::Change>& changes;
  Changes::Counts counts = {};
  Version now = 0;

  void enter(const char* name) {
    uint64_t entry = p.symbols.at(name);
    for (bool again = true; again;) {
      again = false;
      auto times = int64_t(++counts[{entry, now}]);
      for (const auto& c : changes)
        if (c.function == entry && c.from == now && c.at == times) {
          now = c.to, again = true;
          break;
        }
    }
  }
  long leaf(long x) { return enter("leaf"), x + 1; }
  long twice(long x) {
    enter("twice");
    long first = leaf(x);
    return first + leaf(x + 1);
  }
  void run() {
    for (long i = 0; i < 100; i++) {
      twice(i);
      enter("through");
      twice(i);
      enter("jumps");
      leaf(i);
    }
  }
};

TEST(Versions, CallsAndReturnsStayWithin) {
  Program p = compile("calls", calls_c);
  auto at = [&](const char* name) { return p.symbols.at(name); };
  std::vector<Changes::Change> changes = {
      {at("twice"), 0, 1, 5},    {at("leaf"), 1, 2, 7},   {at("jumps"), 2, 0, 3},   {at("through"), 0, 2, 20},
      {at("leaf"), 2, 1, 40},    {at("twice"), 1, 0, 30}, {at("jumps"), 0, 1, 30},  {at("leaf"), 1, 0, 60},
      {at("through"), 0, 1, 33}, {at("leaf"), 1, 1, 70},  {at("leaf"), 1, 2, 90},
  };
  Changes::Counts counts;
  std::string out = file("changed");
  fflush(stdout);
  int stdout_before = dup(1), fd = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(fd, 1);
  close(fd);
  auto status = run({.command = {p.path},
                     .make_tool = [&] { return std::make_unique<Changes>(changes, counts); },
                     .on_program_end = [](auto&, auto&) {}});
  dup2(stdout_before, 1);
  close(stdout_before);
  ASSERT_TRUE(status) << status.error().what;
  EXPECT_EQ(*status, 0);
  EXPECT_EQ(contents(out), run_native({p.path}).output);
  Model model{p, changes};
  model.run();
  for (const char* name : {"leaf", "twice", "through", "jumps"})
    for (Version v = 0; v < 3; v++)
      EXPECT_EQ((counts[{at(name), v}]), (model.counts[{at(name), v}])) << name << " " << int(v);
  EXPECT_GT((model.counts[{at("leaf"), 2}]), 0u);
}

}  // namespace
}  // namespace weir::engine
