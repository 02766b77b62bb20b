// Runs programs under Weir with tools that are made for a test.
#pragma once

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

inline std::string file(const std::string& name) {
  static Directory directory;
  return directory.path + "/" + name;
}

inline std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

struct Program {
  std::string path;
  std::map<std::string, uint64_t> symbols;  // addresses: the program is linked where it will run
};

inline Program compile(const std::string& name, const std::string& source, const std::string& options = "") {
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

inline Ran run_native(const Words& command) {
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

inline Ran run_weir(const Words& command, const Planner& planner) {
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
                  .tell = [&](const Outcome& outcome) -> Result<> {
                    ran.stats = outcome.stats;
                    return {};
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

inline Ran run_same(const Words& command, const Planner& planner) {
  Ran native = run_native(command), ours = run_weir(command, planner);
  EXPECT_EQ(ours.status, native.status);
  EXPECT_EQ(ours.output, native.output);
  EXPECT_EQ(ours.stats.not_supported, 0u);
  return ours;
}

Op add(Counter c, int64_t value = 1) { return {.kind = Op::AddCounter, .counter = c, .value = value}; }

// Plans for the function at an address only.
inline Planner at(uint64_t address, const Planner& planner) {
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
inline void plan_everything(const Subject& s, Counters& c, Plan& p) {
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
inline Planner plan_calls(uint32_t every) {
  return [=](const Subject& s, Counters& c, Plan& p) {
    Counter counter = c.allocate();
    for (uint32_t i = 0; i < s.function.insns.size(); i++)
      if ((i + s.function.entry.value) % every == 0)
        p.insert(Where::Before, i,
                 {{.kind = Op::Set, .temp = Temp::A, .value = counter.index},
                  {.kind = Op::Set, .temp = Temp::B, .value = 3},
                  {.kind = Op::Call, .value = int64_t(rt::add_to_counter)}});
  };
}

}  // namespace weir::engine
