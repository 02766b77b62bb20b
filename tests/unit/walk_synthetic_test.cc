// The walker on stacks that are made up: a program that calls, returns, aligns, allocates, is interrupted and switches stacks at random,
// and that leaves all its dead words lying about. It knows its own call sequence: that is the oracle, for the full walk and
// for the incremental one.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "sample_memory.h"

namespace weir::rt {
namespace {

using sample::CallTree;
using sample::full_node;
using sample::TreeNode;
using test::Memory;

// ---- Code that exists in a table only ---------------------------------------------------------------------------------
constexpr uint64_t text = 0x400000, function_size = 256;

// A function has one rule at all of its addresses.
struct Function {
  Rule rule;
  int64_t locals;  // bytes below the CFA that its frame takes when it calls: rsp = CFA - locals
};

class Table {
 public:
  explicit Table(const std::vector<Function>& functions) {
    std::vector<Rule> rules{{}};
    for (const Function& f : functions) rules.push_back(f.rule);
    uint64_t size = functions.size() * function_size;
    uint32_t pages = static_cast<uint32_t>((size + 1023) >> page_shift);
    std::vector<uint32_t> first;
    std::vector<Row> rows;
    for (uint32_t page = 0; page < pages; page++) {
      first.push_back(static_cast<uint32_t>(rows.size()));
      for (uint64_t at = page << page_shift; at < std::min<uint64_t>(size, (page + 1) << page_shift); at += function_size)
        rows.push_back({static_cast<uint16_t>(at & 1023), static_cast<uint16_t>(1 + at / function_size)});
    }
    first.push_back(static_cast<uint32_t>(rows.size()));
    TableHead head{table_magic,
                   table_version,
                   0,
                   size,
                   pages,
                   static_cast<uint32_t>(rules.size()),
                   static_cast<uint32_t>(rows.size()),
                   0,
                   0};
    words_.resize(table_bytes(head) / 8 + 1);
    auto* out = reinterpret_cast<char*>(words_.data());
    auto put = [&](const void* data, size_t bytes) { memcpy(out, data, bytes), out += bytes; };
    put(&head, sizeof head), put(first.data(), first.size() * 4), put(rules.data(), rules.size() * sizeof(Rule));
    put(rows.data(), rows.size() * sizeof(Row));
    EXPECT_TRUE(is_table(words_.data(), table_bytes(head)));
  }
  const TableHead* head() const { return reinterpret_cast<const TableHead*>(words_.data()); }

 private:
  std::vector<uint64_t> words_;
};

// The memory of the made-up process: three stacks, nothing else.
struct Space {
  static constexpr uint64_t base = 0x7000'0000'0000, size = 1 << 17, count = 3;
  std::vector<uint64_t> words = std::vector<uint64_t>(size * count / 8);
  uint64_t refused = 0;

  bool read(uint64_t address, uint64_t& word) {
    if (address - text < 0x10000) return word = 0xe8'000000, true;  // all code is behind a call
    if (address < base || address > base + size * count - 8) return refused++, false;
    memcpy(&word, reinterpret_cast<char*>(words.data()) + (address - base), 8);
    return true;
  }
  uint64_t& at(uint64_t address) {
    EXPECT_TRUE(address >= base && address <= base + size * count - 8 && address % 8 == 0);
    return words[(address - base) / 8];
  }
};

// ---- The program ------------------------------------------------------------------------------------------------------
class Program {
 public:
  explicit Program(uint64_t seed) : random_(seed) {
    functions_ = {
        {{.kind = Rule::End}, 64},              // the first
        {{.offset = 8, .kind = Rule::Rsp}, 0},  // no frame
        {{.offset = 32, .kind = Rule::Rsp}, 32},
        {{.offset = 176, .kind = Rule::Rsp}, 176},
        {{.offset = 64, .rbp_offset = -16, .kind = Rule::Rsp, .rbp = Rule::SavedCfa}, 64},  // rbp as a number
        {{.offset = 16, .rbp_offset = -16, .kind = Rule::Rbp, .rbp = Rule::SavedCfa}, 0},   // a frame pointer
        {{.offset = 16, .rbp_offset = -16, .kind = Rule::Rbp, .rbp = Rule::SavedCfa}, 1},   // with alloca
        {{.offset = -8, .kind = Rule::AtRbp, .rbp = Rule::SavedRbp}, 0},                    // aligned
        {{.offset = 8, .add = 8, .kind = Rule::AtRsp}, 0},                                  // aligned, by rsp
        {{.kind = Rule::Signal, .is_interrupted = 1}, 0},                                   // the restorer
    };
    table_ = std::make_unique<Table>(functions_);
    range_ = {text, text + functions_.size() * function_size, text, table_->head()};
    stack_ = 0;
    sp_ = top_of(0);
    bp_ = 0;
    start(0);
  }

  struct Call {
    uint32_t function;
    uint64_t cfa;  // what rsp is behind the return
    uint64_t bp;   // what rbp is behind it
    uint64_t pc;   // where it returns to; 0: nowhere
    uint64_t low;  // rsp may not rise above this while the frame lives
    bool is_signal;
    int previous_stack;
    uint64_t previous_sp;
  };

  State state() const { return {address_in(calls().back().function, pc_), sp_, bp_, true, 0}; }
  Code code() const { return {&range_, 1, 1}; }
  std::vector<uint64_t> truth() const {
    std::vector<uint64_t> out;
    for (size_t i = calls().size(); i-- > 1;) out.push_back(calls()[i].pc);
    return out;
  }
  size_t depth() const { return calls().size(); }
  uint64_t first_slot() const { return calls()[1].cfa - 8; }
  Space space;

  enum Stacks { One, Several };
  void change(int steps, Stacks stacks = Several) {
    for (int i = 0; i < steps; i++) {
      uint64_t what = random_() % (stacks == One ? 94 : 100);
      if (what < 48) call();
      else if (what < 94) leave();
      else if (what < 96) interrupt();
      else if (what < 97) switch_stack();
      else move();
    }
  }
  void go_deep(size_t depth) {
    for (int tries = 0; calls().size() < depth && tries < 100'000; tries++) call();
  }
  // A call from where the program is; `words` are allocated by functions that do so.
  void enter(uint32_t callee, uint64_t words) {
    const Function& f = functions_[callee];
    uint64_t pc = address_in(calls().back().function, pc_);
    uint64_t cfa = sp_;
    space.at(cfa - 8) = pc;
    Call c{callee, cfa, bp_, pc, 0, false, stack_, 0};
    switch (f.rule.kind) {
      case Rule::Rsp:
        sp_ = cfa - f.rule.offset;
        scribble(sp_, cfa - 8);
        if (f.rule.rbp == Rule::SavedCfa)
          space.at(cfa + f.rule.rbp_offset) = bp_, bp_ = random_() % 4 ? random_() : bp_ + 1;
        break;
      case Rule::Rbp:
        space.at(cfa - 16) = bp_;
        bp_ = cfa - 16;
        sp_ = bp_ - 16 - (f.locals ? 8 * words : 0);
        scribble(sp_, cfa - 16);
        break;
      case Rule::AtRbp:  // rbp = *rbp, CFA = *(rbp - 8)
        sp_ = (cfa - 8) & ~uint64_t{63};
        sp_ -= 8, space.at(sp_) = bp_, bp_ = sp_;
        sp_ -= 8, space.at(sp_) = cfa;
        sp_ -= 8 * words;
        break;
      default:  // CFA = *(rsp + 8) + 8
        sp_ = ((cfa - 64) & ~uint64_t{63});
        scribble(sp_, cfa - 8);
        space.at(sp_ + 8) = cfa - 8;
        break;
    }
    c.low = sp_;
    calls().push_back(c);
  }

  void unwind_to(size_t depth) {  // an exception
    while (calls().size() > depth && calls().size() > 1) leave();
  }

 private:
  static uint64_t address_in(uint32_t function, uint64_t pc) { return text + function * function_size + 16 + pc; }
  uint64_t top_of(int stack) const { return Space::base + Space::size * (static_cast<uint64_t>(stack) + 1) - 512; }
  uint64_t bottom_of(int stack) const { return Space::base + Space::size * static_cast<uint64_t>(stack) + 4096; }
  std::vector<Call>& calls() { return coroutines_[current_].calls; }
  const std::vector<Call>& calls() const { return coroutines_[current_].calls; }

  void start(int stack) {
    stack_ = stack;
    sp_ = top_of(stack) - 64;
    calls() = {{0, 0, 0, 0, sp_, false, stack, 0}};
    pc_ = 0;
  }

  // Words that the frame writes for itself: some. The rest is whatever was there.
  void scribble(uint64_t from, uint64_t to) {
    for (uint64_t a = from; a + 8 <= to; a += 8)
      if (random_() % 8 == 0)
        space.at(a) = random_() % 3 ? random_() : address_in(random_() % functions_.size(), 64 * (random_() % 3));
  }

  void call() {
    auto callee = static_cast<uint32_t>(1 + random_() % (functions_.size() - 2));
    if (sp_ - 2048 < bottom_of(stack_)) return;
    move();
    // Arguments on the stack, sometimes: rsp moves, which is all right where the CFA is rbp's.
    if (calls().size() > 1 && functions_[calls().back().function].rule.kind == Rule::Rbp && random_() % 3 == 0)
      sp_ -= 8 * (random_() % 4);
    enter(callee, 4 * (random_() % 10));
    move();
  }

  void move() {
    pc_ = 64 * (random_() % 3);
    if (functions_[calls().back().function].rule.rbp == Rule::SavedCfa && random_() % 4 == 0 &&
        functions_[calls().back().function].rule.kind == Rule::Rsp)
      bp_ = random_();
  }

  void leave() {
    if (calls().size() <= 1) return;
    Call c = calls().back();
    calls().pop_back();
    if (c.is_signal) {
      sp_ = c.previous_sp, stack_ = c.previous_stack;
    } else {
      sp_ = c.cfa;
    }
    bp_ = c.bp;
    pc_ = c.pc - address_in(calls().back().function, 0);
    // Arguments on the stack are popped.
    if (functions_[calls().back().function].rule.kind == Rule::Rbp)
      sp_ = std::max(sp_, std::min(calls().back().low, sp_ + 24));
  }

  // The kernel's frame, on this stack or on the alternate one; then the handler, which returns to the restorer.
  void interrupt() {
    bool elsewhere = stack_ != 2 && random_() % 2;
    if (sp_ - 4096 < bottom_of(stack_)) return;
    move();
    auto restorer = static_cast<uint32_t>(functions_.size() - 1);
    Call c{restorer, 0, bp_, address_in(calls().back().function, pc_), 0, true, stack_, sp_};
    uint64_t sp = elsewhere ? top_of(2) : sp_ - 128;
    if (elsewhere) stack_ = 2;
    uint64_t frame = (sp - 512) & ~uint64_t{15};
    space.at(frame + saved_rip_at) = c.pc, space.at(frame + saved_rsp_at) = sp_, space.at(frame + saved_rbp_at) = bp_;
    calls().push_back(c);
    sp_ = frame;
    auto callee = static_cast<uint32_t>(2);
    uint64_t pc = address_in(restorer, 0);
    space.at(sp_ - 8) = pc;
    Call handler{callee, sp_, bp_, pc, 0, false, stack_, 0};
    sp_ -= functions_[callee].rule.offset;
    handler.low = sp_;
    calls().push_back(handler);
    move();
  }

  // Another coroutine, with a stack of its own; not while a handler runs.
  void switch_stack() {
    for (const Call& c : calls())
      if (c.is_signal) return;
    coroutines_[current_].sp = sp_, coroutines_[current_].bp = bp_, coroutines_[current_].pc = pc_;
    current_ = 1 - current_;
    if (calls().empty()) return start(current_);
    sp_ = coroutines_[current_].sp, bp_ = coroutines_[current_].bp, pc_ = coroutines_[current_].pc;
    stack_ = current_;
  }

  std::mt19937_64 random_;
  std::vector<Function> functions_;
  std::unique_ptr<Table> table_;
  CodeRange range_;
  struct Coroutine {
    std::vector<Call> calls;
    uint64_t sp = 0, bp = 0, pc = 0;
  } coroutines_[2];
  int current_ = 0, stack_ = 0;
  uint64_t sp_ = 0, bp_ = 0, pc_ = 0;
};

std::vector<uint64_t> frames_of(const Map& m) {
  std::vector<uint64_t> out;
  for (uint32_t i = m.count; i-- > 0;)
    if (!(m.frames[i].flags & KeptFrame::Silent)) out.push_back(m.links[i].value);
  return out;
}

// The path of a node, innermost first, without its leaf.
std::vector<uint64_t> path_of(const CallTree& tree, uint32_t node) {
  std::vector<uint64_t> out;
  for (node = tree.nodes()[node].parent; tree.nodes()[node].kind == TreeNode::Caller; node = tree.nodes()[node].parent)
    out.push_back(tree.nodes()[node].address);
  return out;
}

const Options precise{.use = {true, false, false}};

// One sample: as the program knows it, as the walker finds it, as the full walk finds it, and as the tree has it.
void check(Program& p, Memory& m, const Options& options = precise) {
  Sample s = m.sample(p.code(), {}, p.state(), options, p.space);
  ASSERT_EQ(s.end, Stop::Complete) << "depth " << p.depth();
  ASSERT_EQ(frames_of(*s.map), p.truth());
  ASSERT_EQ(s.depth, p.depth());
  if (m.node != full_node) {
    ASSERT_EQ(path_of(m.tree, m.node), p.truth());
    ASSERT_EQ(m.tree.nodes()[m.node].address, p.state().pc);
  }
  ASSERT_EQ(verify(m.trace, s, p.code(), {}, p.state(), options, p.space), Difference::None);
}

TEST(Synthetic, IncrementalIsFullIsTrue) {
  uint64_t samples = 0, frames = 0, unwound = 0;
  for (uint64_t seed = 0; seed < 60; seed++) {
    Program p(seed);
    Memory m(4096, 1 << 14);
    std::mt19937_64 random(seed);
    if (seed % 6 == 0) p.go_deep(20 + random() % 200);
    for (int i = 0; i < 5000; i++) {
      p.change(static_cast<int>(seed % 5 == 4 ? random() % 60 : random() % 6));
      if (random() % 500 == 0) p.unwind_to(random() % (p.depth() + 1));
      check(p, m);
      if (testing::Test::HasFatalFailure()) {
        ADD_FAILURE() << "seed " << seed << ", sample " << i;
        return;
      }
    }
    samples += m.trace.counts.samples, frames += m.trace.counts.frames, unwound += m.trace.counts.unwound;
  }
  printf("%lu samples, %.1f frames and %.1f unwound each\n", samples, double(frames) / double(samples),
         double(unwound) / double(samples));
  EXPECT_GE(samples, 300'000u);
  EXPECT_LT(unwound, frames / 3);
}

// All return addresses of the last sample are where they were, but one belongs to another frame now: what decides is rbp.
TEST(Synthetic, TheSameReturnAddressesInOtherFrames) {
  constexpr uint32_t plain = 2, large = 3, number = 4, pointer = 5, with_alloca = 6;
  for (uint32_t callee : {plain, number, pointer}) {
    for (bool has_leaf : {false, true}) {
      Program p(1);
      Memory m(4096, 1 << 14);
      auto call_both = [&] {
        p.enter(callee, 0);
        if (has_leaf) p.enter(plain, 0);
      };
      p.enter(with_alloca, 176 / 8 + 8 + 4);
      call_both();
      check(p, m);
      std::vector<uint64_t> first = p.truth();
      p.unwind_to(1);
      p.enter(large, 0);  // is called from the same place, and returns to it
      p.enter(with_alloca, 8 + 4);
      call_both();
      EXPECT_EQ(p.truth().size(), first.size() + 1);
      check(p, m);
    }
  }
}

TEST(Synthetic, OnlyWhatChangedIsUnwound) {
  Program p(7);
  Memory m(8192);
  p.go_deep(900);
  check(p, m);
  for (int i = 0; i < 100; i++) {
    p.change(2, Program::One);
    Counts before = m.trace.counts;
    check(p, m);
    EXPECT_LE(m.trace.counts.unwound - before.unwound, 40u);
  }
}

// What found the end is looked at each time: here the word that held no return address gets one.
TEST(Synthetic, TheEndMayMoveOutward) {
  Program p(3);
  Memory m(4096, 1 << 14);
  p.enter(2, 0);
  p.enter(3, 0);
  p.enter(3, 0);
  uint64_t& first = p.space.at(p.first_slot());
  uint64_t pc = std::exchange(first, 0);
  for (int i = 0; i < 2; i++) {
    Sample s = m.sample(p.code(), {}, p.state(), precise, p.space);
    EXPECT_EQ(s.end, Stop::Complete);
    EXPECT_EQ(s.depth, 3u);
  }
  first = pc;
  check(p, m);
}

TEST(Synthetic, WalksThatAreCutOffHaveRootsOfTheirOwn) {
  Program p(3);
  Memory m(4096, 1 << 14);
  for (int i = 0; i < 6; i++) p.enter(3, 0);
  check(p, m);
  uint64_t& first = p.space.at(p.first_slot());
  uint64_t pc = first;
  auto sample = [&](const Stack& stack) {
    Sample s = m.sample(p.code(), stack, p.state(), precise, p.space);
    EXPECT_EQ(verify(m.trace, s, p.code(), stack, p.state(), precise, p.space), Difference::None);
    uint32_t root = m.node;
    while (m.tree.nodes()[root].kind != TreeNode::Root) root = m.tree.nodes()[root].parent;
    EXPECT_EQ(root, static_cast<uint32_t>(s.end));
    return s;
  };
  first = 0x1234;  // no code
  EXPECT_EQ(sample({}).end, Stop::NoCode);
  EXPECT_EQ(m.trace.counts.ended[static_cast<int>(Stop::NoCode)], 1u);
  first = pc;
  EXPECT_EQ(sample({}).end, Stop::Complete);
  EXPECT_EQ(sample({}).depth, 7u);
  // The stack is said to end in the middle.
  Sample s = sample({p.state().sp - 64, p.state().sp + 176 * 3});
  EXPECT_EQ(s.end, Stop::OutsideStack);
  EXPECT_EQ(s.depth, 4u);
  EXPECT_EQ(sample({}).end, Stop::Complete);
  // No stack at all.
  State nowhere = p.state();
  nowhere.sp = 0x10;
  s = m.sample(p.code(), {}, nowhere, precise, p.space);
  EXPECT_EQ(s.end, Stop::Unreadable);
  EXPECT_EQ(s.depth, 1u);
  check(p, m);
}

// One walk that was cut off does not stand in the way of those after it.
TEST(Synthetic, OneBadSampleIsForgotten) {
  Program p(9);
  Memory m(4096, 1 << 14);
  for (int i = 0; i < 40; i++) p.enter(3, 0);
  check(p, m);
  uint64_t& word = p.space.at(p.state().sp + 176 * 4 - 8);
  uint64_t pc = std::exchange(word, 0x1234);
  EXPECT_EQ(m.sample(p.code(), {}, p.state(), precise, p.space).end, Stop::NoCode);
  word = pc;
  check(p, m);
  uint64_t before = m.trace.counts.unwound;
  check(p, m);
  EXPECT_EQ(m.trace.counts.unwound - before, 1u);
}

TEST(Synthetic, StacksDeeperThanThereIsRoom) {
  Program p(11);
  Memory m(128);
  bool was_deep = false;
  for (int i = 0; i < 3000; i++) {
    p.change(i % 1000 < 500 ? 3 : 2);
    if (i % 1000 == 250) p.go_deep(p.depth() + 120);
    if (i % 1000 == 900) p.unwind_to(5);
    Sample s = m.sample(p.code(), {}, p.state(), precise, p.space);
    ASSERT_EQ(verify(m.trace, s, p.code(), {}, p.state(), precise, p.space), Difference::None) << i;
    std::vector<uint64_t> truth = p.truth(), found = frames_of(*s.map);
    if (s.end == Stop::TooDeep) {
      was_deep = true;
      ASSERT_GT(truth.size(), 64u);
      ASSERT_LE(found.size(), kept_of_deep);
      truth.resize(found.size());
    } else {
      ASSERT_EQ(s.end, Stop::Complete);
    }
    ASSERT_EQ(found, truth);
  }
  EXPECT_TRUE(was_deep);
}

TEST(Synthetic, AFullTreeSaysSo) {
  Program p(5);
  Memory m(4096, 64);
  for (int i = 0; i < 2000; i++) {
    p.change(4);
    check(p, m);
  }
  EXPECT_EQ(m.tree.size(), 64u);
  uint64_t samples = 0;
  for (uint32_t i = 0; i < m.tree.size(); i++) samples += m.tree.nodes()[i].samples;
  EXPECT_EQ(samples, 2000u);
  EXPECT_GT(m.tree.nodes()[full_node].samples, 1000u);
}

// A word that looks like a return address has appeared in the middle of guessed frames: only who looks again can see it.
TEST(Synthetic, GuessesAreTrustedAsFarAsTheOptionSays) {
  for (uint8_t confidence : {0, 60, 90, 100}) {
    Space space;
    Memory m(4096, 1 << 14);
    CodeRange range{text, text + 0x1000, text, nullptr};
    Code code{&range, 1, 1};
    Options options{.use = {true, true, true}, .confidence = confidence};
    uint64_t sp = Space::base + 4096;
    for (uint64_t at : {24, 64, 104, 160, 200, 240, 280}) space.at(sp + at) = text + at;
    State top{text + 5, sp, 0, true, nullptr};
    auto sample = [&] { return m.sample(code, {}, top, options, space); };
    EXPECT_EQ(sample().depth, 8u);
    EXPECT_EQ(m.trace.counts.guessed, 7u);
    space.at(sp + 80) = text + 80;
    uint32_t depth = sample().depth;
    // The region is all but the innermost frame, and reaches the outermost: a confidence of about 80.
    EXPECT_EQ(depth, confidence <= 60 ? 8u : 9u) << int{confidence};
    // Between two changed regions: a quarter to a half.
    space.at(sp + 240) = text + 241;
    Counts before = m.trace.counts;
    Sample s = sample();
    EXPECT_EQ(m.trace.counts.distrusted > before.distrusted, confidence >= 60) << int{confidence};
    if (confidence == 100) {
      EXPECT_EQ(verify(m.trace, s, code, {}, top, options, space), Difference::None);
    }
  }
}

TEST(Synthetic, OtherCodeIsAnotherWalk) {
  Program p(5);
  Memory m(4096, 1 << 14);
  p.go_deep(100);
  check(p, m);
  Code code = p.code();
  code.generation++;
  Sample s = m.sample(code, {}, p.state(), precise, p.space);
  EXPECT_EQ(s.unwound + 1, s.depth);
  s = m.sample(code, {}, p.state(), precise, p.space);
  EXPECT_EQ(s.unwound, 1u);
}

}  // namespace
}  // namespace weir::rt
