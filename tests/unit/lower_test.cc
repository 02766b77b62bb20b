// Lowering: what is written is decoded again and held against the function. (Executed: lower_probe_test.cc, lower_run_test.cc.)
#include "lower_view.h"

namespace weir::instrument {
namespace {

// A plan that says where its counters are to be found.
struct Counting {
  Plan plan;
  Counters counters;
  View::Expected expected;

  void insert(Where where, uint32_t index, View::Seen& into) {
    Counter c = counters.allocate();
    plan.insert(where, index, {Op{.kind = Op::AddCounter, .counter = c, .value = 1}});
    into.insert(c.index);
  }
};

enum Places : unsigned { Entries = 1, Blocks = 2, Befores = 4, Afters = 8, Edges = 16, Sites = 32, All = 63 };

Counting count(const x86::Function& f, unsigned places, Random& random, unsigned one_in = 1) {
  Counting c;
  std::vector<std::function<void()>> todo;
  auto add = [&](Where where, uint32_t index, View::Seen& into) {
    if (random() % one_in == 0) todo.push_back([&c, where, index, &into] { c.insert(where, index, into); });
  };
  if (places & Entries) add(Where::Entry, 0, c.expected.entry);
  for (BlockId b = 0; b < f.blocks.size(); b++) {
    const Block& block = f.blocks[b];
    bool follows_call = false;
    if (places & Blocks) add(Where::Block, b, c.expected.block[b]);
    for (uint32_t n = block.first; n < block.first + block.count; n++) {
      if (places & Befores) add(Where::Before, n, c.expected.before[n]);
      if ((places & Afters) && (block.ends == BlockEnd::FallThrough || n + 1 < block.first + block.count))
        add(Where::After, n, c.expected.after[n]);
    }
    if (places & Edges) {
      if (block.ends == BlockEnd::Branch || block.ends == BlockEnd::Jump) add(Where::Taken, b, c.expected.taken[b]);
      if (block.ends == BlockEnd::Branch || block.ends == BlockEnd::FallThrough ||
          (block.ends == BlockEnd::Call && block.fallthrough != no_block))
        add(Where::FallThrough, b, c.expected.fall[b]);
    }
    for (const Block& other : f.blocks) {
      if (f.blocks.size() > 300) break;
      follows_call |= other.ends == BlockEnd::Call && other.fallthrough == b;
    }
    if ((places & Sites) && follows_call) add(Where::ReturnSite, b, c.expected.site[b]);
  }
  std::shuffle(todo.begin(), todo.end(), random);  // a tool may ask in any order
  for (auto& t : todo) t();
  return c;
}

void check_random(Random& random, size_t blocks, size_t max_size, unsigned places, unsigned one_in = 1) {
  std::vector<uint64_t> begins;
  Bytes bytes = random_function(random, blocks, max_size, begins);
  Subjects s(bytes, begins[random() % std::min<size_t>(begins.size(), 4)]);
  if (random() % 2)
    for (BlockId b = 0; b < s.f.blocks.size(); b += 7)
      if (s.f.blocks[b].begin != s.f.entry) s.f.jump_targets.push_back(s.f.blocks[b].begin);
  if (blocks > 1000) {
    ASSERT_GT(s.f.blocks.size(), blocks / 2);
  }
  Counting c = count(s.f, places, random, one_in);
  View v(s, c.plan, {0x2000'0000 + random() % 64 * 16});
  v.expected = c.expected;
  v.check();
}

TEST(Lower, RandomFunctions) {
  Random random(1);
  for (int round = 0; round < 1500 && !HasFailure(); round++) {
    SCOPED_TRACE(fmt::format("round {}", round));
    check_random(random, random() % 40 + 1, random() % 3 ? 20 : 200, round % 3 ? unsigned(random()) & All : 0);
  }
}

TEST(Lower, ProbesHereAndThere) {
  Random random(2);
  for (int round = 0; round < 1000 && !HasFailure(); round++) {
    SCOPED_TRACE(fmt::format("round {}", round));
    check_random(random, random() % 30 + 1, random() % 60 + 1, All, 4);
  }
}

TEST(Lower, LargeFunctions) {
  Random random(3);
  for (unsigned places :
       {0u, unsigned(Blocks), unsigned(Blocks | Entries), unsigned(Befores | Afters), unsigned(Edges), unsigned(All)}) {
    SCOPED_TRACE(fmt::format("places {}", places));
    check_random(random, 3000, 200, places);
    check_random(random, 3000, 10, places);
    check_random(random, 20'000, 4, places);
    if (HasFailure()) return;
  }
}

// Near branches must stay near enough, with the longest of probes between them, and nothing may be longer than foretold.
TEST(Lower, LongProbesStayWithinTheirBounds) {
  Random random(4);
  for (int round = 0; round < 4000 && !HasFailure(); round++) {
    std::vector<uint64_t> begins;
    Bytes bytes = random_function(random, random() % 30 + 1, random() % 40 + 1, begins);
    Subjects s(bytes, begins[0]);
    Plan plan;
    auto op = [&] {
      static constexpr int64_t values[] = {1, -1, 1000, int64_t{1} << 40, INT64_MIN, INT32_MIN};
      int64_t value = values[random() % 6];
      auto kind = static_cast<Op::Kind>(random() % (Op::Call + 1));
      if (kind == Op::Load || kind == Op::Store) value = 16;
      return Op{.kind = kind,
                .temp = Temp(random() % 2),
                .other = Temp(random() % 2),
                .reg = x86::Gpr(random() % 16),
                .count = 1,
                .counter = {uint32_t(random() % 1000)},
                .value = value};
    };
    for (BlockId b = 0; b < s.f.blocks.size(); b++) {
      auto where = static_cast<Where>(round % 2 ? random() % 7
                                                : 1 + random() % 3);  // without probes of edges, branches may be short
      uint32_t index = where == Where::Before || where == Where::After ? s.f.blocks[b].first : b;
      for (int n = random() % 3; n >= 0; n--) {
        if (random() % 3 == 0)
          plan.insert(where, index, {op(), op(), op(), op(), op(), op(), op(), op(), op(), op(), op(), op()});
        else plan.insert(where, index, {op()});
      }
    }
    View(s, plan, {0x2000'0000 + random() % 64 * 16}).check_sizes();
  }
}

// The longest of probes between a short branch and its target, where everything is live: the branch must still reach.
TEST(Lower, BranchesOverLongProbes) {
  Op call{.kind = Op::Call}, add{.kind = Op::AddCounter, .value = int64_t{1} << 40},
      skip{.kind = Op::SkipUnless, .count = 1, .value = INT64_MIN}, load{.kind = Op::Load};
  for (std::vector<Op> ops : std::vector<std::vector<Op>>{{call}, {add}, {load}, {skip, skip}, {load, load}, {call, add}})
    for (uint8_t size = 1; size < 120; size++) {
      Bytes bytes{0x74, size};  // je over nops
      bytes.resize(2 + size, 0x90);
      bytes.insert(bytes.end(), {0xe9, 0, 0, 1, 0});
      Subjects s(bytes, 0);
      Plan plan;
      insert(plan, Where::Block, 1, ops);
      ASSERT_NO_FATAL_FAILURE(View(s, plan, {0x2000'0000}).check_sizes());  // lower() itself checks every short branch
    }
}

TEST(Lower, SystemCallNumberFromGs) {
  // mov eax, 39; mov rax, gs:[0]; syscall; jmp to itself: it may be any call
  Subjects s({0xb8, 39, 0, 0, 0, 0x65, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0, 0x0f, 0x05, 0xeb, 0xfe}, 0);
  std::vector<std::byte> code(size_bound(s.f, {}, {0x2000'0000}));
  Lowered out = lowered(s, {}, code, {0x2000'0000}, [](AppPc) { return CachePc{}; });
  uint8_t jump[] = {0x65, 0xff, 0x24, 0x25, offsetof(rt::ThreadBlock, enter_syscall)};
  EXPECT_NE(memmem(code.data(), out.size, jump, sizeof jump), nullptr);
}

}  // namespace
}  // namespace weir::instrument
