// What the operations of a probe do in a running program: registers, memory, counters, routines.
#include "probes_fixture.h"

namespace weir::engine {
namespace {

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

TEST(Probes, Routines) {
  Witness w;
  auto cells = w.run([](std::span<const Counter> c) {
    return std::vector<Op>{{.kind = Op::Set, .temp = Temp::A, .value = c[3].index},
                           {.kind = Op::GetRegister, .temp = Temp::B, .reg = x86::RSI},
                           {.kind = Op::Call, .value = int64_t(rt::add_to_counter)},
                           {.kind = Op::StoreCounter, .temp = Temp::B, .counter = c[1]}};
  });
  EXPECT_EQ(cells[3], 45u);
  EXPECT_EQ(cells[1], 9u);
  EXPECT_EQ(w.last, 22u);
}

}  // namespace
}  // namespace weir::engine
