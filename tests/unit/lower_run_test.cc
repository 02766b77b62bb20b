// Whole functions with probes everywhere are executed beside the same functions without, and their counters hold.
#include <sys/auxv.h>

#include "lower_machine.h"

namespace weir::instrument {
namespace {

// Plain instructions that leave rsp alone, and touch no memory but the red zone, the program's own gs, and some data behind the code.
constexpr size_t data_distance = 0x8'0000, data_size = 0x1'0000;

void append_plain(Random& random, Bytes& b) {
  auto any = [&] {
    uint8_t r = random() % 16;
    return r == x86::RSP ? uint8_t{x86::RDX} : r;
  };
  auto two = [&](Bytes opcode, uint8_t reg, uint8_t rm) {  // REX.W, both registers
    b.push_back(0x48 | (reg >> 3) << 2 | rm >> 3);
    b.insert(b.end(), opcode.begin(), opcode.end());
    b.push_back(0xc0 | (reg & 7) << 3 | (rm & 7));
  };
  uint8_t r = any(), q = any(), slot = uint8_t(-8 * int(random() % 8 + 1));
  switch (random() % 26) {
    case 0:
    case 1:
    case 2:
    case 3: return two({uint8_t(0x01 + 8 * (random() % 8))}, q, r);  // add or adc sbb and sub xor cmp
    case 4: two({0x83}, uint8_t(random() % 8), r); return b.push_back(uint8_t(random()));
    case 5: return two({0xff}, uint8_t(random() % 2), r);      // inc, dec
    case 6: return two({0xf7}, uint8_t(2 + random() % 2), r);  // not, neg
    case 7: two({0xc1}, uint8_t(random() % 8), r); return b.push_back(uint8_t(random() % 70));
    case 8: return two({0xd3}, uint8_t(random() % 8), r);                                            // shifts by cl
    case 9: two({0x0f, 0xba}, uint8_t(4 + random() % 4), r); return b.push_back(uint8_t(random()));  // bt, bts, btr, btc
    case 10: return two({0x89}, q, r);
    case 11: return two({0x0f, uint8_t(0x40 + random() % 16)}, q, r);  // cmov
    case 12: return two({0x0f, uint8_t(0x90 + random() % 16)}, 0, r);  // set
    case 13: return two({0x0f, 0xaf}, q, r), two({0x39}, q, r);        // imul, cmp: it leaves flags undefined
    case 14: return two({0x87}, q, r);                                 // xchg
    case 15: return two({0x0f, 0xb6}, q, r);                           // movzx
    case 16:
      b.push_back(std::array<uint8_t, 5>{0xf5, 0xf8, 0xf9, 0x9e, 0x9f}[random() % 5]);
      return;  // cmc clc stc sahf lahf
    case 17: b.insert(b.end(), {uint8_t(0x48 | (r >> 3) << 2), 0x89, uint8_t(0x44 | (r & 7) << 3), 0x24, slot}); return;
    case 18:
      b.insert(b.end(), {uint8_t(0x48 | (r >> 3) << 2), 0x13, uint8_t(0x44 | (r & 7) << 3), 0x24, slot});
      return;  // adc r, [rsp - n]
    case 19:   // and q, 56; then add r, gs:[q + 8] or mov gs:[q*2 + disp32], r
    case 20: {
      b.insert(b.end(), {uint8_t(0x48 | q >> 3), 0x83, uint8_t(0xe0 | (q & 7)), 56});
      bool store = random() % 2, index = random() % 2;
      uint8_t rex = 0x48 | (r >> 3) << 2, reg = (r & 7) << 3;
      b.push_back(0x65);
      if (index)
        b.insert(b.end(), {uint8_t(rex | (q >> 3) << 1), uint8_t(store ? 0x89 : 0x03), uint8_t(0x04 | reg),
                           uint8_t(0x45 | (q & 7) << 3), 8, 0, 0, 0});
      else if ((q & 7) == 4)
        b.insert(b.end(), {uint8_t(rex | q >> 3), uint8_t(store ? 0x11 : 0x8b), uint8_t(0x44 | reg), 0x24, 8});
      else b.insert(b.end(), {uint8_t(rex | q >> 3), uint8_t(store ? 0x11 : 0x8b), uint8_t(0x40 | reg | (q & 7)), 8});
      return;
    }
    case 21:  // rdgsbase r64, r32; wrgsbase of what it was
      b.insert(b.end(), {0xf3, uint8_t(0x48 | r >> 3), 0x0f, 0xae, uint8_t(0xc8 | (r & 7)), 0xf3, uint8_t(0x48 | r >> 3),
                         0x0f, 0xae, uint8_t(0xd8 | (r & 7))});
      b.insert(b.end(), {0xf3, uint8_t(0x40 | q >> 3), 0x0f, 0xae, uint8_t(0xc8 | (q & 7))});
      return;
    case 22:
    case 23:
    case 24:  // mov, add, adc, cmp, lea, xchg, or a store, of [rip + distance]; imul with an immediate behind it
      if (random() % 8 == 0) {
        b.insert(b.end(), {uint8_t(0x48 | (r >> 3) << 2), 0x69, uint8_t(0x05 | (r & 7) << 3)});
        append_u32(b, data_distance), append_u32(b, uint32_t(random()));
        return two({0x39}, r, r);
      }
      b.insert(b.end(), {uint8_t(0x48 | (r >> 3) << 2),
                         std::array<uint8_t, 7>{0x8b, 0x03, 0x13, 0x3b, 0x8d, 0x87, 0x89}[random() % 7],
                         uint8_t(0x05 | (r & 7) << 3)});
      return append_u32(b, data_distance);
    default:
      b.insert(b.end(), {0x65, uint8_t(0x48 | (r >> 3) << 2), uint8_t(random() % 2 ? 0x8b : 0x01),
                         uint8_t(0x04 | (r & 7) << 3), 0x25, uint8_t(random() % 16 * 8), 0, 0, 0});
  }
}

// Blocks with branches ahead, and some back while bits are left in a word of the red zone. All ends are a jump out.
Bytes running_function(Random& random, size_t count) {
  std::vector<Bytes> bodies(count);
  std::vector<uint64_t> at{0};
  std::vector<int> kind(count);
  for (size_t i = 0; i < count; i++) {
    for (uint64_t n = random() % 8 + (i == 0); n > 0; n--) append_plain(random, bodies[i]);
    kind[i] = i + 1 == count ? 2 : int(random() % 5);
    if (kind[i] == 3)
      bodies[i].insert(bodies[i].end(),
                       {0xd1, 0x6c, 0x24, uint8_t(-68 - 4 * int(random() % 8))});  // shr dword [rsp - n], 1
    at.push_back(at.back() + bodies[i].size() + (kind[i] == 2 ? 5 : kind[i] == 4 ? 0 : 6));
  }
  Bytes all;
  for (size_t i = 0; i < count; i++) {
    all.insert(all.end(), bodies[i].begin(), bodies[i].end());
    size_t target = kind[i] == 3 ? random() % (i + 1) : i + 1 < count ? i + 1 + random() % (count - i - 1) : 0;
    uint64_t to = kind[i] == 2 && (i + 1 == count || random() % 8 == 0) ? at[count] + 0x100 : at[target];
    if (kind[i] == 4) continue;
    if (kind[i] == 2) all.push_back(0xe9);
    else all.insert(all.end(), {0x0f, uint8_t(kind[i] == 3 ? 0x85 : 0x80 | random() % 16)});
    append_u32(all, to - at[i + 1]);
  }
  return all;
}

struct State {
  rt::Registers registers;
  uint64_t stack[64], gs[64];
  std::vector<char> data = std::vector<char>(data_size);
};

// Counters that tell whether flow is kept: what comes into a block is what goes out of it.
struct Flow {
  struct OfBlock {
    uint32_t block, first_insn, last_insn, taken, fall;
  };
  std::vector<OfBlock> blocks;
  uint32_t entry = 0;
};

Flow plan_flow(const x86::Function& f, Random& random, Plan& plan, const uint64_t* memory) {
  Flow flow;
  uint32_t next = cells;
  auto count = [&](Where where, uint32_t index) {
    plan.insert(where, index, {{.kind = Op::AddCounter, .counter = {next}, .value = 1}});
    return next++;
  };
  auto disturb = [&](Where where, uint32_t index) {
    std::vector<Op> ops{{.kind = Op::GetRegister, .temp = Temp::A, .reg = x86::Gpr(random() % 16)},
                        {.kind = Op::Set, .temp = Temp::B, .value = reinterpret_cast<int64_t>(memory)}};
    for (uint64_t n = random() % 4; n > 0; n--) {
      Op op = random_op(random, memory);
      if (op.temp == Temp::B && op.kind != Op::Store && op.kind != Op::StoreCounter)
        op.temp = Temp::A;  // B stays an address
      op.other = Temp::B;
      ops.push_back(op);
    }
    insert(plan, where, index, ops);
  };
  flow.entry = count(Where::Entry, 0);
  for (BlockId b = 0; b < f.blocks.size(); b++) {
    const Block& block = f.blocks[b];
    uint32_t last = block.first + block.count - 1;
    if (random() % 2) disturb(Where::Block, b);
    flow.blocks.push_back({count(Where::Block, b), count(Where::Before, block.first), count(Where::Before, last),
                           count(Where::Taken, b), count(Where::FallThrough, b)});
    for (uint32_t n = block.first; n <= last; n++) {
      if (random() % 2) disturb(Where::Before, n);
      if (n != last && random() % 2) disturb(Where::After, n);
    }
    if (random() % 2) disturb(Where::Taken, b);
    if (random() % 2) disturb(Where::FallThrough, b);
  }
  return flow;
}

TEST(Probe, RandomFunctionsRunAsTheyWould) {
  if (!(getauxval(AT_HWCAP2) & 2)) GTEST_SKIP() << "no rdgsbase";
  Machine m;
  Random random(8);
  char* app = static_cast<char*>(mmap(reinterpret_cast<void*>(app_base), 1 << 20, PROT_READ | PROT_WRITE | PROT_EXEC,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
  ASSERT_EQ(reinterpret_cast<uint64_t>(app), app_base);
  for (int round = 0; round < 10'000; round++) {
    SCOPED_TRACE(fmt::format("round {}", round));
    Subjects s(running_function(random, random() % 30 + 1), 0);
    Plan plan;
    Flow flow = plan_flow(s.f, random, plan, m.memory);
    size_t bound = size_bound(s.f, plan, {reinterpret_cast<uint64_t>(m.code)});
    ASSERT_LT(bound, m.room);
    Lowered out = m.lower(s, plan);
    ASSERT_LE(out.size, bound);
    ASSERT_EQ(out.not_supported, 0u);
    State before, native, ours;
    for (uint64_t& w : before.stack) w = random();
    for (uint64_t& w : before.gs) w = random();
    for (uint64_t& r : before.registers.gpr) r = random();
    before.registers.gpr[x86::RSP] = reinterpret_cast<uint64_t>(m.stack + 32);
    before.registers.flags = 0x202;
    memcpy(app, s.bytes.data(), s.bytes.size());
    Emitter e({reinterpret_cast<std::byte*>(app) + s.bytes.size() + 0x100, 16}, {});
    e.jmp(relative(6));  // behind it
    e.quad(reinterpret_cast<uint64_t>(weir_test_leave));
    uint64_t gs[64];
    auto run = [&](const void* code, State& after, bool native_gs) {
      memcpy(gs, before.gs, sizeof gs);
      memcpy(m.stack, before.stack, sizeof m.stack);
      memset(app + data_distance, 0x5a, data_size);
      m.block->app_gs = reinterpret_cast<uint64_t>(gs);
      if (native_gs) m.use_gs(gs);
      weir_test_enter(&before.registers, code);
      m.use_gs(m.block);
      after.registers = weir_test_result;
      memcpy(after.stack, m.stack, sizeof m.stack);
      memcpy(after.gs, gs, sizeof gs);
      memcpy(after.data.data(), app + data_distance, data_size);
    };
    run(app, native, true);
    memset(m.counters, 0, 8 * all_cells);
    run(m.code + out.entry, ours, false);
    for (int r = 0; r < 16; r++) ASSERT_EQ(ours.registers.gpr[r], native.registers.gpr[r]) << "register " << r;
    ASSERT_EQ(ours.registers.flags, native.registers.flags);
    ASSERT_EQ(memcmp(ours.stack, native.stack, sizeof native.stack), 0);
    ASSERT_EQ(memcmp(ours.gs, native.gs, sizeof native.gs), 0);
    ASSERT_EQ(ours.data, native.data);

    std::vector<uint64_t> in(s.f.blocks.size());
    in[s.f.block_at(s.f.entry)] = 1;
    uint64_t left = 0;
    ASSERT_EQ(m.counters[flow.entry], 1u);
    for (BlockId b = 0; b < s.f.blocks.size(); b++) {
      const Block& block = s.f.blocks[b];
      uint64_t n = m.counters[flow.blocks[b].block], taken = m.counters[flow.blocks[b].taken],
               fall = m.counters[flow.blocks[b].fall];
      ASSERT_EQ(m.counters[flow.blocks[b].first_insn], n);
      ASSERT_EQ(m.counters[flow.blocks[b].last_insn], n);
      ASSERT_EQ(taken + fall, n) << "block " << b;
      block.taken != no_block ? in[block.taken] += taken : left += taken;
      block.fallthrough != no_block ? in[block.fallthrough] += fall : left += fall;
    }
    for (BlockId b = 0; b < s.f.blocks.size(); b++) ASSERT_EQ(m.counters[flow.blocks[b].block], in[b]) << "block " << b;
    ASSERT_EQ(left, 1u);
  }
}

}  // namespace
}  // namespace weir::instrument
