// S9: from trees of addresses to a profile. The trees are made by hand, over a program whose addresses objdump tells; one is
// sampled from this very process.
#include "sample/assemble.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/time.h>

#include <algorithm>
#include <sstream>

#include "compiled.h"
#include "own_code.h"
#include "store/reader.h"
#include "store/write.h"

namespace weir::sample {
namespace {

using namespace weir::test;
using profile::FunctionCount;
using profile::Profile;
using profile::SiteKind;
using rt::Stop;

constexpr char source[] = R"(static inline __attribute__((always_inline)) int square(int n) { return n * n; }
int leaf(int n) { return
  square(n) * 3 + n; }
int again(int n) { if (n == 0) return leaf(n); return again(n - 1) + 1; }
int through(int (*f)(int), int n) { return f(n) + 1; }
__attribute__((noreturn)) void stop(void) { __builtin_trap(); }
void ends(void) { stop(); }
void behind(void) { __builtin_trap(); }
asm(".globl restorer\n.type restorer, @function\nrestorer: movq $15, %rax\nsyscall\n.size restorer, . - restorer");
int main(int argc, char** argv) {
  return leaf(argc) +
    again(argc) + through(leaf, argc); }
)";

struct Insn {
  uint64_t address;
  std::string bytes, text;
};

// The program, and its instructions by function as objdump has them.
struct Compiled {
  std::string path = build("target", "target.c", source,
                           "gcc -O1 -g -fno-inline -fno-optimize-sibling-calls -fno-align-functions -fno-toplevel-reorder "
                           "-fcf-protection=none -fno-ipa-cp -o target target.c");
  std::map<std::string, std::vector<Insn>> functions;

  Compiled() {
    std::istringstream lines(output_of("objdump -d --no-show-raw-insn target"));
    std::istringstream with_bytes(output_of("objdump -d --insn-width=16 target"));
    std::string function, raw;
    for (std::string line; std::getline(lines, line) && std::getline(with_bytes, raw);) {
      char name[100];
      uint64_t address;
      if (sscanf(line.c_str(), "%*x <%99[^>]>:", name) == 1) function = name;
      else if (sscanf(line.c_str(), " %lx:", &address) == 1 && raw.find('\t') != std::string::npos) {
        std::string bytes = raw.substr(raw.find('\t') + 1);
        bytes = bytes.substr(0, bytes.find('\t'));
        std::erase(bytes, ' ');
        functions[function].push_back({address, bytes, line.substr(line.find('\t') + 1)});
      }
    }
  }
  uint64_t begin(const std::string& function) const { return functions.at(function).front().address; }
  // The n-th call in a function that has `target` in it.
  const Insn& call(const std::string& function, const std::string& target) const {
    return *std::ranges::find_if(functions.at(function), [&](const Insn& i) {
      return i.text.starts_with("call") && i.text.find(target) != std::string::npos;
    });
  }
  uint64_t behind(const Insn& call) const { return call.address + call.bytes.size() / 2; }
  uint64_t behind(const std::string& function, const std::string& target) const { return behind(call(function, target)); }
};

const Compiled& compiled() {
  static Compiled c;
  return c;
}

struct TreeOf : Thread {
  uint32_t root(Stop end = Stop::Complete) { return put({Node::Root, end, none, none, 0, 0}); }
  uint32_t caller(uint32_t parent, uint64_t address, uint32_t image = 0) {
    return put({Node::Caller, Stop::None, parent, image, address, 0});
  }
  uint32_t leaf(uint32_t parent, uint64_t address, uint64_t samples, uint32_t image = 0) {
    return put({Node::Leaf, Stop::None, parent, image, address, samples});
  }
  uint32_t put(Node n) {
    nodes.push_back(n);
    return static_cast<uint32_t>(nodes.size() - 1);
  }
};

const profile::SampledBy by_time{.event = "cpu", .source = "timer", .rate = 1000, .unwind = "auto", .confidence = 50};

Program program_of(std::vector<Thread> threads) {
  Program p;
  p.pid = 100, p.command = {"target"}, p.started = 1000, p.ended = 2000, p.exit_status = 0, p.ended_by = "exit";
  p.images = {compiled().path};
  p.threads = std::move(threads);
  return p;
}
Profile assembled(Thread thread) { return assemble(by_time, std::vector{program_of({std::move(thread)})}); }

uint32_t id_of(const Profile& p, const std::string& name) {
  auto found = std::ranges::find(p.functions, name, &profile::Function::name);
  return found == p.functions.end() ? none : static_cast<uint32_t>(found - p.functions.begin());
}
// "self/total" of a function in a thread.
std::string times(const Profile& p, const std::string& name, size_t thread = 0) {
  for (const FunctionCount& c : p.threads.at(thread).functions)
    if (c.function == id_of(p, name)) return fmt::format("{}/{}", c.self, c.total);
  return "none";
}
std::string name_of(const Profile& p, uint32_t function) { return function == none ? "-" : p.functions.at(function).name; }
// "caller+0x5 call→callee total" of every call, sorted.
std::vector<std::string> calls(const Profile& p, size_t thread = 0) {
  constexpr const char* kinds[] = {"call", "indirect", "tail", "signal", "start"};
  std::vector<std::string> all;
  for (const profile::CallCount& c : p.threads.at(thread).calls) {
    const profile::CallSite& s = p.sites.at(c.site);
    all.push_back(
        fmt::format("{} {}→{} {}", name_of(p, s.function), kinds[static_cast<int>(s.kind)], name_of(p, c.callee), c.total));
  }
  std::ranges::sort(all);
  return all;
}
// "main;leaf 7" of every call path, sorted.
std::vector<std::string> paths(const Profile& p, size_t thread = 0) {
  const auto& contexts = p.threads.at(thread).contexts;
  std::vector<std::string> all, texts;
  for (const profile::Context& c : contexts) {
    EXPECT_TRUE(c.parent == none || c.parent < texts.size());
    texts.push_back((c.parent == none ? "" : texts[c.parent] + ";") + name_of(p, c.function));
    all.push_back(fmt::format("{} {}", texts.back(), c.self));
  }
  std::ranges::sort(all);
  return all;
}
using Lines = std::vector<std::string>;

// All that must be true of any profile of samples.
void expect_sound(const Profile& p) {
  uint64_t samples = 0;
  for (const profile::Thread& t : p.threads) {
    uint64_t self = 0, in_contexts = 0;
    for (const FunctionCount& c : t.functions) {
      self += c.self;
      EXPECT_LE(c.total, t.cycles);
      EXPECT_LE(c.self, c.total);
      EXPECT_EQ(c.calls, 0u);
      ASSERT_LT(c.function, p.functions.size());
      EXPECT_NE(p.functions[c.function].name, "");
    }
    for (const profile::Context& c : t.contexts) {
      in_contexts += c.self;
      ASSERT_LT(c.function, p.functions.size());
      ASSERT_LT(c.site, p.sites.size());
    }
    std::map<uint32_t, uint64_t> in_leaves;
    for (const profile::LeafCount& c : t.leaves) {
      ASSERT_LT(c.context, t.contexts.size());
      in_leaves[c.block] += c.samples;
    }
    for (const profile::BlockCount& c : t.blocks) {
      ASSERT_LT(c.block, p.blocks.size());
      EXPECT_EQ(c.count, in_leaves[c.block]);
    }
    EXPECT_EQ(self, t.cycles);
    EXPECT_EQ(in_contexts, t.cycles);
    ASSERT_LT(t.process, p.processes.size());
    samples += t.cycles;
  }
  for (const profile::Block& b : p.blocks) EXPECT_EQ(std::tuple(b.instructions, b.cycles), std::tuple(1u, 1u));
  EXPECT_EQ(p.run.sampling->samples, samples);
  EXPECT_TRUE(p.run.full_paths);
}

TEST(SampleAssemble, S9_FunctionsCallsAndPaths) {
  TreeOf t;
  uint32_t root = t.root();
  uint32_t in_leaf = t.caller(root, compiled().behind("main", "leaf"));
  uint32_t in_again = t.caller(root, compiled().behind("main", "again"));
  t.leaf(in_leaf, compiled().begin("leaf"), 5);
  t.leaf(t.caller(in_again, compiled().behind("again", "leaf")), compiled().begin("leaf"), 7);
  t.leaf(in_again, compiled().begin("again"), 2);
  t.leaf(root, compiled().begin("main"), 1);
  Profile p = assembled(t);
  expect_sound(p);
  EXPECT_EQ(times(p, "leaf"), "12/12");
  EXPECT_EQ(times(p, "again"), "2/9");
  EXPECT_EQ(times(p, "main"), "1/15");
  EXPECT_EQ(calls(p), (Lines{"- start→main 15", "again call→leaf 7", "main call→again 9", "main call→leaf 5"}));
  EXPECT_EQ(paths(p), (Lines{"main 1", "main;again 2", "main;again;leaf 7", "main;leaf 5"}));
  EXPECT_EQ(p.functions.size(), 4u);  // of those that were not sampled nothing is known; square() is inlined in leaf()
  EXPECT_EQ(p.run.cycles_per_second, 1000u);
  EXPECT_EQ(p.run.clock, "samples");
}

TEST(SampleAssemble, S9_PlacesAndLines) {
  TreeOf t;
  uint32_t root = t.root();
  uint32_t in_main = t.caller(root, compiled().behind("main", "through"));
  const Insn& indirect = compiled().call("through", "*%r");
  uint32_t in_through = t.caller(in_main, compiled().behind(indirect));
  for (const Insn& i : compiled().functions.at("leaf")) t.leaf(in_through, i.address, 1);
  t.leaf(in_through, compiled().begin("leaf"), 9);
  Profile p = assembled(t);
  expect_sound(p);
  EXPECT_EQ(calls(p), (Lines{"- start→main " + std::to_string(9 + compiled().functions.at("leaf").size()),
                             "main call→through " + std::to_string(9 + compiled().functions.at("leaf").size()),
                             "through indirect→leaf " + std::to_string(9 + compiled().functions.at("leaf").size())}));
  for (const profile::CallSite& s : p.sites) {
    if (s.kind == SiteKind::Start || s.kind == SiteKind::Inlined) continue;
    bool is_main = s.function == id_of(p, "main");
    EXPECT_EQ(s.offset, is_main ? compiled().call("main", "through").address : indirect.address);
    EXPECT_TRUE(s.file.ends_with("target.c")) << s.file;
    EXPECT_EQ(s.line, is_main ? 12u : 5u);
  }
  // A block an instruction, with its bytes.
  ASSERT_EQ(p.blocks.size(), compiled().functions.at("leaf").size());
  for (const profile::Block& b : p.blocks) {
    auto insn = std::ranges::find(compiled().functions.at("leaf"), b.offset, &Insn::address);
    ASSERT_NE(insn, compiled().functions.at("leaf").end());
    std::string bytes;
    for (std::byte byte : p.code_of(b)) bytes += fmt::format("{:02x}", static_cast<unsigned>(byte));
    EXPECT_EQ(bytes, insn->bytes) << insn->text;
    EXPECT_EQ(b.function, id_of(p, "leaf"));
  }
  for (const profile::BlockCount& c : p.threads[0].blocks)
    EXPECT_EQ(c.count, p.blocks[c.block].offset == compiled().begin("leaf") ? 10u : 1u);
  EXPECT_TRUE(
      std::ranges::any_of(p.lines, [](const profile::LinePart& l) { return l.inlined == "square" && l.line == 1; }));
  EXPECT_TRUE(std::ranges::any_of(p.lines, [](const profile::LinePart& l) { return l.inlined.empty() && l.line == 3; }));
  EXPECT_EQ(p.functions[id_of(p, "leaf")].line, 2u);
}

TEST(SampleAssemble, A5_RecursionIsNotCountedTwice) {
  TreeOf t;
  uint32_t in_main = t.caller(t.root(), compiled().behind("main", "again"));
  uint32_t deep = in_main;
  for (int i = 0; i < 100'000; i++) {
    deep = t.caller(deep, compiled().behind("again", "again"));
    if (i % 10'000 == 0) t.leaf(deep, compiled().begin("again"), 1);
  }
  t.leaf(t.caller(deep, compiled().behind("again", "leaf")), compiled().begin("leaf"), 3);
  Profile p = assembled(t);
  expect_sound(p);
  EXPECT_EQ(times(p, "again"), "10/13");
  EXPECT_EQ(times(p, "main"), "0/13");
  EXPECT_EQ(calls(p), (Lines{"- start→main 13", "again call→again 0", "again call→leaf 3", "main call→again 13"}));
}

TEST(SampleAssemble, S8_WhatWasCutOffSaysWhy) {
  TreeOf t;
  for (uint32_t i = 0; i < root_count; i++) t.root(static_cast<Stop>(i));  // as CallTree has them
  uint32_t full = t.put({Node::Full, Stop::None, none, none, 0, 4});
  t.leaf(static_cast<uint32_t>(Stop::NoRule), compiled().begin("leaf"), 3);
  t.leaf(t.caller(static_cast<uint32_t>(Stop::TooDeep), compiled().behind("again", "leaf")), compiled().begin("leaf"), 2);
  t.leaf(static_cast<uint32_t>(Stop::Complete), compiled().begin("main"), 1);
  t.leaf(full, compiled().begin("main"), 1);
  t.counts.ended[static_cast<int>(Stop::NoRule)] = 3;
  t.counts.ended[static_cast<int>(Stop::TooDeep)] = 2;
  t.counts.ended[static_cast<int>(Stop::Complete)] = 6;
  Profile p = assembled(t);
  expect_sound(p);
  EXPECT_EQ(paths(p), (Lines{"[cut off: no unwind rule] 0", "[cut off: no unwind rule];leaf 3", "[cut off: too deep] 0",
                             "[cut off: too deep];again 0", "[cut off: too deep];again;leaf 2",
                             "[no room for call paths] 4", "[no room for call paths];main 1", "main 1"}));
  EXPECT_EQ(std::ranges::count(calls(p), "[cut off: no unwind rule] start→leaf 3"), 1);
  EXPECT_EQ(p.functions[id_of(p, "[cut off: too deep]")].image, none);
  const profile::Sampling& s = *p.run.sampling;
  EXPECT_EQ(s.truncated, 5u);
  EXPECT_EQ(s.no_room, 4u);
  EXPECT_EQ(s.truncated_by, (std::vector<profile::Sampling::Reason>{{"no unwind rule", 3}, {"too deep", 2}}));
}

// The return address of a call that does not return is in the next function.
TEST(SampleAssemble, S9_ACallAtTheEndOfAFunctionIsItsOwn) {
  ASSERT_EQ(compiled().behind("ends", "stop"), compiled().begin("behind"));
  TreeOf t;
  t.leaf(t.caller(t.root(), compiled().behind("ends", "stop")), compiled().begin("stop"), 1);
  Profile p = assembled(t);
  EXPECT_EQ(paths(p), (Lines{"ends 0", "ends;stop 1"}));
}

// A signal comes at the first instruction of a function; its handler was called from there, not by the kernel's way back.
TEST(SampleAssemble, S9_AHandlerIsCalledWhereTheSignalCame) {
  TreeOf t;
  uint32_t in_main = t.caller(t.root(), compiled().behind("main", "leaf"));
  uint32_t interrupted = t.caller(in_main, compiled().begin("leaf"));
  uint32_t restorer = t.caller(interrupted, compiled().begin("restorer"));
  t.leaf(t.caller(restorer, compiled().behind("again", "again")), compiled().begin("again"), 6);
  t.leaf(interrupted, compiled().begin("restorer"), 1);
  t.leaf(t.caller(t.root(Stop::NoCode), compiled().begin("restorer")), compiled().begin("stop"), 1);
  Profile p = assembled(t);
  expect_sound(p);
  EXPECT_EQ(paths(p),
            (Lines{"[cut off: address in no known code] 0", "[cut off: address in no known code];stop 1", "main 0",
                   "main;leaf 0", "main;leaf;again 0", "main;leaf;again;again 6", "main;leaf;restorer 1"}));
  EXPECT_EQ(std::ranges::count(calls(p), "leaf signal→again 6"), 1);
}

TEST(SampleAssemble, S9_CodeThatNobodyKnows) {
  TreeOf t;
  uint32_t root = t.root();
  t.leaf(t.caller(root, 0x7fff00001234, none), 0x7fff00005678, 4, none);
  t.leaf(root, 0x10, 1);                             // in the image, but in no function
  t.leaf(root, compiled().begin("main"), 2, 12345);  // an image that there is not
  Profile p = assembled(t);
  expect_sound(p);
  EXPECT_EQ(times(p, "[unknown code]"), "6/6");
  EXPECT_EQ(times(p, "target"), "1/1");
  ASSERT_EQ(p.blocks.size(), 3u);
  EXPECT_EQ(p.blocks[0].offset, 0x7fff00005678u);
  EXPECT_EQ(p.blocks[0].size, 0u);
}

TEST(SampleAssemble, S9_CodeWithoutNamesIsOneFunctionBetweenItsNeighbours) {
  output_of("strip -s -R .eh_frame -R .eh_frame_hdr -o bare target");
  TreeOf t;
  uint32_t root = t.root();
  t.leaf(root, compiled().begin("leaf"), 1);
  t.leaf(root, compiled().begin("again"), 1);
  Program program = program_of({t});
  program.images = {scratch() / "bare"};
  Profile p = assemble(by_time, std::vector{program});
  expect_sound(p);
  EXPECT_EQ(p.functions.size(), 1u);
  EXPECT_EQ(p.blocks.size(), 2u);
}

TEST(SampleAssemble, S9_CodeWrittenAtRunTimeHasTheNamesOfItsOwnProgram) {
  auto names = [](const char* text) {
    int fd = memfd_create("names", 0);
    EXPECT_EQ(write(fd, text, strlen(text)), static_cast<ssize_t>(strlen(text)));
    return fd;
  };
  TreeOf t;
  uint32_t root = t.root();
  t.leaf(t.caller(root, 0x10040, 1), 0x20010, 3, 1);
  t.leaf(root, 0x50000, 2, 1);
  std::vector<Program> programs = {program_of({t}), program_of({t})};
  for (Program& p : programs) p.images.push_back("[code written at run time]");
  programs[1].pid = 101;
  programs[0].perf_map = names("10000 40 first\n20000 100 second\n");
  programs[1].perf_map = names("10000 1000 other\n20000 100 \n20000 100 in other\n");
  Profile p = assemble(by_time, programs);
  for (Program& program : programs) close(program.perf_map);
  expect_sound(p);
  EXPECT_EQ(paths(p, 0), (Lines{"[code written at run time]+0x20100 2", "first 0", "first;second 3"}));
  EXPECT_EQ(paths(p, 1), (Lines{"[code written at run time]+0x20100 2", "other 0", "other;in other 3"}));
  EXPECT_EQ(p.images.size(), 3u);
}

TEST(SampleAssemble, A7_ThreadsAndProcesses) {
  auto one = [](const char* function, uint64_t samples) {
    TreeOf t;
    t.leaf(t.root(), compiled().begin(function), samples);
    t.counts.frames = 10, t.counts.unwound = 5, t.counts.guessed = 1, t.counts.by_frame_pointer = 2;
    t.counts.distrusted = 3, t.counts.new_maps = 4, t.lost = 6, t.late = 7;
    t.differences[static_cast<int>(rt::Difference::Depth)] = 8;
    return t;
  };
  TreeOf a = one("main", 1), b = one("leaf", 2), c = one("leaf", 4);
  a.tid = 100, b.tid = 101, c.tid = 200;
  b.name = "worker";
  Program parent = program_of({a, b}), child = program_of({c});
  child.pid = 200, child.parent_pid = 100, child.started = 1500, child.ended = 1600;
  child.notes = {"something was not seen"};
  child.exit_status.reset(), child.ended_by = "detach";
  profile::SampledBy by_event = by_time;
  by_event.event = "cycles", by_event.rate = 0, by_event.period = 100'000, by_event.verify = true;
  Profile p = assemble(by_event, std::vector{child, parent});  // children end first
  expect_sound(p);
  ASSERT_EQ(p.processes.size(), 2u);
  EXPECT_EQ(p.processes[0].parent, 1u);
  EXPECT_EQ(p.processes[1].parent, none);
  EXPECT_EQ(p.processes[0].notes, Lines{"something was not seen"});
  EXPECT_EQ(p.processes[0].ended_by, "detach");
  ASSERT_EQ(p.threads.size(), 3u);
  EXPECT_EQ(p.threads[2].name, "worker");
  EXPECT_EQ(times(p, "leaf", 0), "4/4");
  EXPECT_EQ(times(p, "leaf", 2), "2/2");
  EXPECT_EQ(p.functions.size(), 3u);  // code is shared
  const profile::Sampling& s = *p.run.sampling;
  EXPECT_EQ((std::array{s.samples, s.frames, s.frames_unwound, s.frames_heuristic, s.frames_by_frame_pointer, s.distrusted,
                        s.new_maps, s.lost, s.late, s.verify_differences, s.truncated}),
            (std::array<uint64_t, 11>{7, 30, 15, 3, 6, 9, 12, 18, 21, 24, 0}));
  EXPECT_EQ(s.differences_by, (std::vector<profile::Sampling::Reason>{{"depth", 24}}));
  EXPECT_EQ(p.run.cycles_per_second, 0u);
}

TEST(SampleAssemble, S9_NothingWasSampled) {
  expect_sound(assemble(by_time, {}));
  expect_sound(assemble(by_time, std::vector{program_of({})}));
  Profile p = assembled(TreeOf());
  expect_sound(p);
  EXPECT_EQ(p.threads.size(), 1u);
  EXPECT_TRUE(p.threads[0].functions.empty());
}

// A program can write to the memory that the trees are read from.
TEST(SampleAssemble, S8_HostileTrees) {
  TreeOf t;
  t.put({Node::Leaf, Stop::None, 0, 0, compiled().begin("leaf"), 1});  // its own parent
  t.put(
      {Node::Caller, Stop::None, 77, 0, compiled().begin("leaf"), 2});  // a parent that comes later, and samples of its own
  t.leaf(1, UINT64_MAX, 3);
  t.caller(2, 0);  // below a leaf
  t.leaf(3, 7, 5);
  t.put({static_cast<Node::Kind>(200), static_cast<Stop>(99), none, 0, 1, 1});
  t.put({Node::Root, static_cast<Stop>(99), 3, 3, 3, 11});
  t.put({Node::Root, Stop::Complete, none, none, 0, 13});
  t.leaf(t.root(static_cast<Stop>(255)), UINT64_MAX - 3, 17, UINT32_MAX - 1);
  t.name = std::string("\n\x1b[31m\0\xff", 8);
  Program program = program_of({t});
  program.images = {compiled().path, "", "relative", "/nonexistent/\n", "[", "[vdso]", "/dev/zero", scratch()};
  for (uint32_t image = 0; image < program.images.size(); image++)
    for (uint64_t offset : {uint64_t{0}, uint64_t{1}, uint64_t{0x1000}, UINT64_MAX / 2, UINT64_MAX}) {
      program.threads[0].nodes.push_back({Node::Caller, Stop::None, 1, image, offset, 0});
      program.threads[0].nodes.push_back({Node::Leaf, Stop::None, 1, image, offset, 1});
    }
  program.parent_pid = 100;  // itself
  profile::SampledBy sampling = by_time;
  sampling.rate = -1e300;
  Profile p = assemble(sampling, std::vector{program, program});
  expect_sound(p);
  EXPECT_EQ(p.run.sampling->rate, 0);
  EXPECT_NE(id_of(p, "[cut off: damaged call path]"), none);
  EXPECT_NE(id_of(p, "[cut off: unknown reason]"), none);
  std::string file = scratch() / "hostile.weir";
  ASSERT_TRUE(store::write(p, file));
  EXPECT_EQ(store::Reader::open(file)->run()->sampling, p.run.sampling);
}

TEST(SampleAssemble, S9_ThroughTheStore) {
  TreeOf t;
  uint32_t root = t.root();
  t.leaf(t.caller(root, compiled().behind("main", "leaf")), compiled().begin("leaf"), 5);
  t.counts.frames = 10, t.lost = 1;
  t.counts.ended[static_cast<int>(Stop::Loop)] = 1;
  t.differences[static_cast<int>(rt::Difference::Slot)] = 2;
  profile::SampledBy sampling = by_time;
  sampling.rate = 99.5;
  Profile p = assemble(sampling, std::vector{program_of({t})});
  std::string file = scratch() / "through.weir";
  ASSERT_TRUE(store::write(p, file));
  auto reader = store::Reader::open(file);
  ASSERT_TRUE(reader) << reader.error().what;
  EXPECT_EQ(*reader->run(), p.run);
  EXPECT_EQ(reader->totals()->cycles, 5u);
  std::string totals;
  ASSERT_TRUE(reader->functions(
      {}, [&](const store::FunctionRow& f) { totals += fmt::format("{} {}/{};", f.name, f.self, f.total); }));
  EXPECT_EQ(totals, "square 5/5;leaf 0/5;main 0/5;");
  std::string tree;
  auto add = [&](const store::ContextRow& c) { tree += fmt::format("{} {}/{};", c.function, c.self, c.total); };
  ASSERT_TRUE(reader->contexts(add));
  EXPECT_EQ(tree, fmt::format("{} 0/5;{} 0/5;{} 5/5;", id_of(p, "main"), id_of(p, "leaf"), id_of(p, "square")));
  ASSERT_TRUE(reader->fold_inlined(true));
  totals.clear(), tree.clear();
  ASSERT_TRUE(reader->functions(
      {}, [&](const store::FunctionRow& f) { totals += fmt::format("{} {}/{};", f.name, f.self, f.total); }));
  EXPECT_EQ(totals, "leaf 5/5;main 0/5;");
  ASSERT_TRUE(reader->contexts(add));
  EXPECT_EQ(tree, fmt::format("{} 0/5;{} 5/5;", id_of(p, "main"), id_of(p, "leaf")));
}

// ---- this very process, under a timer ----

volatile uint64_t sink;
extern "C" {
[[gnu::noinline]] void spin_inside(uint64_t n) {
  while (n--) sink = sink + n;
}
[[gnu::noinline]] void spin(int depth) {
  if (depth) spin(depth - 1);
  else spin_inside(100'000);
  sink = sink + 1;
}
}

struct Sampler {
  OwnCode code;
  Memory memory;
  rt::Stack stack = own_stack();
  static inline Sampler* current = nullptr;

  static void on_signal(int, siginfo_t*, void* context) {
    rt::GuardedMemory guarded;
    current->memory.sample(current->code.code(), current->stack, state_of(*static_cast<ucontext_t*>(context)), {}, guarded);
  }
  void sample(uint64_t samples) {
    current = this;
    survive_reads();
    struct sigaction action{};
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    action.sa_sigaction = on_signal;
    sigaction(SIGPROF, &action, nullptr);
    itimerval often{{0, 1000}, {0, 1000}}, never{};
    setitimer(ITIMER_PROF, &often, nullptr);
    while (static_cast<volatile uint64_t&>(memory.trace.counts.samples) < samples) spin(20);
    setitimer(ITIMER_PROF, &never, nullptr);
  }
  Program collected() const {
    Program program;
    TreeOf thread;
    for (uint32_t i = 0; i < memory.tree.size(); i++) {
      const TreeNode& n = memory.tree.nodes()[i];
      Node node{static_cast<Node::Kind>(n.kind), Stop::None, n.parent, none, n.address, n.samples};
      if (n.kind == TreeNode::Root) node.end = static_cast<Stop>(n.address);
      if (n.kind == TreeNode::Root || n.kind == TreeNode::Full) node.parent = none;
      Dl_info info;
      if (const rt::CodeRange* range = code.code().find(n.address);
          range && dladdr(reinterpret_cast<void*>(n.address), &info)) {
        std::string path =
            std::string_view(info.dli_fname).find(".so") == std::string::npos ? "/proc/self/exe" : info.dli_fname;
        auto known = std::ranges::find(program.images, path);
        node.image = static_cast<uint32_t>(known - program.images.begin());
        if (known == program.images.end()) program.images.push_back(path);
        node.offset -= range->bias;
      }
      thread.put(node);
    }
    thread.counts = memory.trace.counts;
    program.threads = {thread};
    return program;
  }
};

TEST(SampleAssemble, S1_ThisProcessUnderATimer) {
  Sampler sampler;
  sampler.sample(200);
  Profile p = assemble(by_time, std::vector{sampler.collected()});
  expect_sound(p);
  const profile::Sampling& s = *p.run.sampling;
  EXPECT_GE(s.samples, 200u);
  EXPECT_GE(s.frames, 20 * s.samples);
  EXPECT_LT(s.truncated, s.samples / 10);
  auto total = [&](const char* name) {
    for (const FunctionCount& c : p.threads[0].functions)
      if (c.function == id_of(p, name)) return c.total;
    return uint64_t{0};
  };
  for (const char* name : {"main", "spin", "spin_inside"}) EXPECT_GT(total(name), s.samples * 8 / 10) << name;
  // Twenty frames of spin() inside each other, and the line of the call.
  size_t deepest = 0;
  for (const std::string& path : paths(p)) {
    size_t frames = 0;
    for (size_t at = 0; (at = path.find(";spin;", at)) != std::string::npos; at += 5) frames++;
    deepest = std::max(deepest, frames);
  }
  EXPECT_GE(deepest, 20u);
  EXPECT_TRUE(std::ranges::any_of(p.sites, [&](const profile::CallSite& site) {
    return site.function == id_of(p, "spin") && site.file.ends_with("sample_assemble_test.cc") && site.line;
  }));
  EXPECT_TRUE(std::ranges::any_of(p.lines, [&](const profile::LinePart& l) {
    return p.blocks[l.block].function == id_of(p, "spin_inside") && l.file.ends_with("sample_assemble_test.cc");
  }));
}

}  // namespace
}  // namespace weir::sample
