// Probes are executed, with any registers live, against a model of their operations.
#include "lower_machine.h"

namespace weir::instrument {
namespace {

// What the operations mean.
struct Model {
  uint64_t temp[2] = {}, counters[cells], memory[cells], arguments[2] = {};
  uint64_t calls = 0;
  bool is_valid = true;  // all accesses are to the memory, and aligned
  std::optional<Version> gone;  // to this version

  void run(std::span<const Op> ops, const rt::Registers& r, const uint64_t* memory_base, AppPc app) {
    for (size_t k = 0; k < ops.size(); k++) {
      const Op& op = ops[k];
      uint64_t& t = temp[int(op.temp)];
      uint64_t offset = temp[int(op.other)] + uint64_t(op.value) - reinterpret_cast<uint64_t>(memory_base);
      uint64_t index = offset % 8 ? cells : offset / 8;
      auto value = uint64_t(op.value);
      switch (op.kind) {
        case Op::PushFrame:
        case Op::PopFrame:
        case Op::Own:
        case Op::ArriveFrame:
        case Op::ResyncFrames:
        case Op::SetJumpSite:
        case Op::CallWith: FAIL() << "not modelled: tests/run/profile-*.sh"; break;
        default: FAIL() << "operations_test"; break;
        case Op::AddCounter: counters[op.counter.index] += value; break;
        case Op::AddClock: counters[(app.value >> 2) % Counters::clock_cells] += value; break;
        case Op::Set: t = value; break;
        case Op::GetRegister: t = r.gpr[op.reg]; break;
        case Op::LoadCounter: t = counters[op.counter.index]; break;
        case Op::StoreCounter: counters[op.counter.index] = t; break;
        case Op::Load: index < cells ? void(t = memory[index]) : void(is_valid = false); break;
        case Op::Store: index < cells ? void(memory[index] = t) : void(is_valid = false); break;
        case Op::Add: t += value; break;
        case Op::SkipUnless: k += t == value ? 0 : op.count; break;
        case Op::GoTo: gone = Version(op.value); return;
        case Op::Call: calls++, arguments[0] = temp[0], arguments[1] = temp[1]; break;
      }
      if (!is_valid) return;
    }
  }
};

// One probe before one instruction, with any registers live: the tool gets what it asked for, and the program sees nothing.
void execute(Machine& m, Random& random, std::span<const Op> ops, x86::RegSet live) {
  Subjects s({0x90, 0xe9, 0, 0, 1, 0}, 0);  // nop; jmp out
  s.live.live_in[0] = live;
  Plan plan;
  insert(plan, Where::Before, 0, ops);
  Lowered out = m.lower(s, plan);
  ASSERT_LE(out.size, size_bound(s.f, plan, {reinterpret_cast<uint64_t>(m.code)}));

  rt::Registers before{};
  for (uint64_t& r : before.gpr) r = random() % 4 ? random() : reinterpret_cast<uint64_t>(m.memory + random() % cells);
  before.gpr[x86::RSP] = reinterpret_cast<uint64_t>(m.stack + 32);
  before.flags = 0x202 | (random() % 2 ? DF_bit : 0);
  for (uint64_t f : flag_bits) before.flags |= random() % 2 ? f : 0;
  for (uint32_t i = 0; i < cells; i++) m.counters[i] = random() % 2 ? random() : 7, m.memory[i] = random();
  for (uint64_t& w : m.stack) w = random();
  m.block->target = 0;
  m.block->code_version = 0;
  Model model;
  memcpy(model.counters, m.counters, sizeof model.counters);
  memcpy(model.memory, m.memory, sizeof model.memory);
  model.run(ops, before, m.memory, {app_base});
  if (!model.is_valid) return;
  uint64_t stack[64];
  memcpy(stack, m.stack, sizeof stack);

  weir_test_enter(&before, m.code + out.entry);

  const rt::Registers& after = weir_test_result;
  for (uint32_t i = 0; i < cells; i++) {
    ASSERT_EQ(m.counters[i], model.counters[i]) << "counter " << i;
    ASSERT_EQ(m.memory[i], model.memory[i]) << "word " << i;
  }
  for (unsigned r = 0; r < 16; r++)
    ASSERT_TRUE(after.gpr[r] == before.gpr[r] || !(live.gpr >> r & 1) || r == x86::RSP) << "register " << r;
  ASSERT_EQ(after.gpr[x86::RSP], before.gpr[x86::RSP]);
  for (int f = 0; f < 6; f++)
    ASSERT_TRUE(!((after.flags ^ before.flags) & flag_bits[f]) || !(live.flags >> f & 1)) << "flag " << f;
  ASSERT_EQ(after.flags & DF_bit, before.flags & DF_bit);
  ASSERT_EQ(memcmp(stack, m.stack, sizeof stack), 0) << "the stack was written to";
  ASSERT_EQ(m.block->target, model.calls);
  ASSERT_EQ(m.block->code_version, model.gone.value_or(0));
  if (model.gone) {
    const Exit& exit = out.exits.at(m.block->exit_id - first_exit);
    ASSERT_EQ(exit.kind, Exit::Direct);
    ASSERT_EQ(exit.version, *model.gone);
    ASSERT_EQ(exit.target, AppPc{app_base});
  }
  if (model.calls) {
    ASSERT_EQ(m.block->routine_args[0], model.arguments[0]);
    ASSERT_EQ(m.block->routine_args[1], model.arguments[1]);
  }
}

std::string show(std::span<const Op> ops, x86::RegSet live) {
  static const char* const names[] = {"AddCounter", "AddClock", "Set", "GetRegister", "LoadCounter", "StoreCounter",
                                      "Load",       "Store",    "Add", "SkipUnless",  "Call",        "GoTo"};
  std::string text = fmt::format("live {:04x}, flags {:02x}", live.gpr, live.flags);
  for (const Op& o : ops)
    text += fmt::format("\n  {} {} {} r{} count {} counter {} value {:#x}", names[o.kind], "AB"[int(o.temp)],
                        "AB"[int(o.other)], int(o.reg), o.count, o.counter.index, uint64_t(o.value));
  return text;
}

x86::RegSet random_live(Random& random) {
  x86::RegSet live = x86::RegSet::all();
  if (random() % 3) live.gpr = random() % 2 ? uint16_t(random()) : uint16_t(random() | random() | random());
  if (random() % 2) live.flags = random() % 2 ? 0 : uint8_t(random() % 64);
  return live;
}

TEST(Probe, RandomOperations) {
  Machine m;
  Random random(5);
  for (int round = 0; round < 40'000; round++) {
    std::vector<Op> ops;
    Op a = random_op(random, m.memory), b = random_op(random, m.memory);  // no temporary is read before it is set
    a.temp = Temp::A, b.temp = Temp::B;
    a.kind = random() % 2   ? Op::Set
             : random() % 2 ? Op::GetRegister
                            : Op::LoadCounter,
    b.kind = random() % 2 ? Op::Set : Op::GetRegister;
    ops = {a, b};
    for (uint64_t n = random() % 12; n > 0; n--) ops.push_back(random_op(random, m.memory));
    x86::RegSet live = random_live(random);
    SCOPED_TRACE(fmt::format("round {}: {}", round, show(ops, live)));
    ASSERT_NO_FATAL_FAILURE(execute(m, random, ops, live));
  }
}

TEST(Probe, GoesToAnotherVersion) {
  Machine m;
  Random random(8);
  for (int round = 0; round < 20'000; round++) {
    std::vector<Op> ops{{.kind = Op::Set, .temp = Temp::A, .value = random_value(random)},
                        {.kind = Op::Set, .temp = Temp::B, .value = 7}};
    for (uint64_t n = random() % 6; n > 0; n--) ops.push_back(random_op(random, m.memory));
    for (uint64_t n = random() % 2 + 1; n > 0; n--)
      ops.insert(ops.begin() + 2 + int64_t(random() % (ops.size() - 1)),
                 {.kind = Op::GoTo, .value = int64_t(random() % 3 + 1)});
    x86::RegSet live = random_live(random);
    SCOPED_TRACE(fmt::format("round {}: {}", round, show(ops, live)));
    ASSERT_NO_FATAL_FAILURE(execute(m, random, ops, live));
  }
}

// What stands before a change of versions stays there.
TEST(Probe, BlockProbesStayBeforeAChangeOfVersions) {
  Machine m;
  Subjects s({0x48, 0x89, 0xf7, 0x19, 0xc8, 0x31, 0xd2, 0xe9, 0, 0, 1, 0},
             0);  // mov rdi, rsi; sbb eax, ecx; xor edx, edx; jmp out
  Plan plan;
  plan.insert(Where::Block, 0, {{.kind = Op::AddCounter, .counter = {10}, .value = 1}});
  plan.insert(Where::Before, 1, {{.kind = Op::GoTo, .value = 2}});
  Lowered out = m.lower(s, plan);
  rt::Registers r{};
  r.gpr[x86::RSI] = 2, r.gpr[x86::RSP] = reinterpret_cast<uint64_t>(m.stack + 32);
  m.counters[10] = 0;
  weir_test_enter(&r, m.code + out.entry);
  EXPECT_EQ(m.counters[10], 1u);
  EXPECT_EQ(weir_test_result.gpr[x86::RDI], 2u);
  EXPECT_EQ(m.block->code_version, 2u);
}

TEST(Probe, AdditionsOfAnyValue) {
  Machine m;
  Random random(6);
  for (int round = 0; round < 10'000; round++) {
    std::vector<Op> ops;
    for (uint64_t n = random() % 4 + 1; n > 0; n--)
      ops.push_back({.kind = random() % 2 ? Op::AddCounter : Op::AddClock,
                     .counter = {uint32_t(random() % cells)},
                     .value = random_value(random)});
    x86::RegSet live = random_live(random);
    SCOPED_TRACE(fmt::format("round {}: {}", round, show(ops, live)));
    ASSERT_NO_FATAL_FAILURE(execute(m, random, ops, live));
  }
}

TEST(Probe, AllRegistersAtOnce) {
  Machine m;
  Random random(7);
  for (int round = 0; round < 100; round++) {
    std::vector<Op> ops;
    for (uint32_t r = 0; r < 16; r++) {
      Temp t = Temp(random() % 2);
      ops.push_back({.kind = Op::GetRegister, .temp = t, .reg = x86::Gpr(r)});
      ops.push_back({.kind = Op::AddCounter, .counter = {40}, .value = 1});
      ops.push_back({.kind = Op::StoreCounter, .temp = t, .counter = {10 + r}});
    }
    ASSERT_NO_FATAL_FAILURE(execute(m, random, ops, random_live(random)));
  }
}

// A dead register is not dead for a tool that reads it: not for other probes, and not for what comes through the table.
TEST(Probe, ReadsOfDeadRegisters) {
  Machine m;
  Subjects s({0x90, 0x90, 0xb8, 0, 0, 0, 0, 0xb9, 0, 0, 0, 0, 0x31, 0xd2, 0xe9, 0, 0, 1, 0},
             0);  // nop; nop; mov eax, 0; mov ecx, 0; xor edx, edx; jmp out
  Plan plan;
  for (uint32_t n : {0, 1})
    plan.insert(Where::Before, n,
                {{.kind = Op::Set, .temp = Temp::A, .value = 1}, {.kind = Op::Set, .temp = Temp::B, .value = 2}});
  uint32_t cell = 10;
  for (x86::Gpr r : {x86::RAX, x86::RCX, x86::RDX})
    plan.insert(Where::Before, 2, {{.kind = Op::GetRegister, .reg = r}, {.kind = Op::StoreCounter, .counter = {cell++}}});
  Lowered out = m.lower(s, plan);
  rt::Registers r{};
  r.gpr[x86::RAX] = 100, r.gpr[x86::RDX] = 102, r.gpr[x86::RSP] = reinterpret_cast<uint64_t>(m.stack + 32);
  m.block->rcx = 101;
  weir_test_enter(&r, m.code + out.table[0].offset);
  EXPECT_EQ(m.counters[10], 100u);
  EXPECT_EQ(m.counters[11], 101u);
  EXPECT_EQ(m.counters[12], 102u);
}

// A probe that looks at the program stays at the begin of its block, be the flags dead or not.
TEST(Probe, BlockProbesThatReadStayAtTheBegin) {
  Machine m;
  Subjects s({0x48, 0x89, 0xf7, 0x19, 0xc8, 0x31, 0xd2, 0xe9, 0, 0, 1, 0},
             0);  // mov rdi, rsi; sbb eax, ecx; xor edx, edx; jmp out
  Plan plan;
  plan.insert(Where::Block, 0, {{.kind = Op::GetRegister, .reg = x86::RDI}, {.kind = Op::StoreCounter, .counter = {10}}});
  plan.insert(Where::Block, 0, {{.kind = Op::AddCounter, .counter = {11}, .value = 1}});
  Lowered out = m.lower(s, plan);
  rt::Registers r{};
  r.gpr[x86::RDI] = 1, r.gpr[x86::RSI] = 2, r.gpr[x86::RSP] = reinterpret_cast<uint64_t>(m.stack + 32);
  m.counters[11] = 0;
  weir_test_enter(&r, m.code + out.entry);
  EXPECT_EQ(m.counters[10], 1u);
  EXPECT_EQ(m.counters[11], 1u);
}

}  // namespace
}  // namespace weir::instrument
