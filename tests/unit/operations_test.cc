// The operations of operate.cc are executed, before any instruction and with any registers live, against a model of them. The model of
// operands is tests/unit/accesses.h.
#include <ucontext.h>
#include <csetjmp>
#include <csignal>

#include "accesses.h"
#include "base/processor.h"
#include "instrument/buffer.h"
#include "instrument/operations.h"
#include "lower_machine.h"
#include "rt/buffer.h"

namespace weir::instrument {
namespace {

using x86::MemoryOperand;

constexpr uint32_t words = 32, buffer_size = 4096;

// What the program has, beside general registers and flags.
struct Vectors {
  alignas(64) uint8_t zmm[32][64];
  uint64_t k[8];
};

bool has_avx512() { return __builtin_cpu_supports("avx512bw"); }
bool has_avx2() { return __builtin_cpu_supports("avx2"); }

// Registers 5 and 21, and k3, which the instructions of these tests use.
[[gnu::always_inline]] inline void load_vectors(const Vectors& v) {
  if (has_avx512())
    asm volatile("vmovdqu64 %0, %%zmm5; vmovdqu64 %1, %%zmm21; vmovdqu64 %2, %%zmm6; kmovq %3, %%k3"
                 :
                 : "m"(v.zmm[5]), "m"(v.zmm[21]), "m"(v.zmm[6]), "m"(v.k[3]));
  else if (has_avx2()) asm volatile("vmovdqu %0, %%ymm5; vmovdqu %1, %%ymm6" : : "m"(v.zmm[5]), "m"(v.zmm[6]));
}

uint64_t fs_base() {
  uint64_t base = 0;
  syscall(SYS_arch_prctl, ARCH_GET_FS, &base);
  return base;
}

struct Case {
  std::vector<Op> ops;
  x86::RegSet live;
  rt::Registers before;
  Vectors vectors;
};

// What the operations mean.
struct Model {
  Machine& m;
  const Case& c;
  const x86::Insn& insn;
  const x86::MemoryOperands operands;
  uint64_t temp[temps] = {}, counters[cells], tool[words];
  uint8_t memory[sizeof Machine::memory];
  uint64_t calls = 0, result = 0;
  std::vector<uint64_t> records;  // whole ones
  uint64_t record = 0;
  bool is_valid = true;
  std::optional<Version> gone = {};  // to this version

  uint64_t base() const { return reinterpret_cast<uint64_t>(m.memory); }
  bool holds(const Op& op, uint64_t value) const {
    uint64_t t = temp[int(op.temp)];
    switch (op.condition) {
      case Condition::Equal: return t == value;
      case Condition::NotEqual: return t != value;
      case Condition::Below: return t < value;
      case Condition::AboveOrEqual: return t >= value;
    }
    return false;
  }
  x86::Registers registers() const {
    x86::Registers r{};
    memcpy(r.gpr, c.before.gpr, sizeof r.gpr);
    r.flags = c.before.flags;
    memcpy(r.mask, c.vectors.k, sizeof r.mask);
    memcpy(r.vec, c.vectors.zmm, sizeof r.vec);
    r.fs = fs_base(), r.gs = m.block->app_gs;
    return r;
  }
  uint64_t extent_of(const MemoryOperand& o) const {
    if (o.extent == x86::Extent::State && !o.size) {
      uint64_t wanted = c.before.gpr[2] << 32 | uint32_t(c.before.gpr[0]), size = 576;
      for (const StateComponent& s : processor().state)
        if (wanted >> s.number & 1) size = std::max<uint64_t>(size, s.end);
      return size;
    }
    uint64_t size = 0;
    for (const x86::Bytes& b : x86::bytes_of(o, registers())) size += b.size;
    return size;
  }
  uint64_t address_of(MemoryOperand o) const {
    x86::Registers r = registers();
    if (o.extent == x86::Extent::Masked || o.extent == x86::Extent::Packed || o.extent == x86::Extent::Indexed) {
      o.extent = x86::Extent::Plain;
      if (o.index_size && o.extent == x86::Extent::Indexed) o.index = x86::no_register;
    }
    auto bytes = x86::bytes_of(o, r);
    return bytes.empty() ? 0 : bytes[0].address;
  }
  uint64_t selected_of(const MemoryOperand& o) const {
    uint64_t bits = 0;
    auto all = x86::selected(o, registers());
    for (size_t i = 0; i < all.size(); i++) bits |= uint64_t{all[i]} << i;
    return bits;
  }
  uint64_t element_of(MemoryOperand o, uint32_t element) const {
    o.mask_in = x86::MaskIn::Nothing;
    return x86::bytes_of(o, registers())[element].address;
  }

  void run(std::span<const Op> ops) {
    for (size_t k = 0; k < ops.size() && is_valid; k++) {
      const Op& op = ops[k];
      uint64_t& t = temp[int(op.temp)];
      uint64_t value = op.by_temp ? temp[int(op.other)] : uint64_t(op.value);
      uint64_t offset = temp[int(op.other)] + uint64_t(op.value) - base();
      bool is_inside = offset <= sizeof memory - op.size;
      switch (op.kind) {
        case Op::AddCounter: counters[op.counter.index] += value; break;
        case Op::AddClock: counters[(app_base >> 2) % Counters::clock_cells] += value; break;
        case Op::Set: t = value; break;
        case Op::GetRegister: t = c.before.gpr[op.reg]; break;
        case Op::LoadCounter: t = counters[op.counter.index]; break;
        case Op::StoreCounter: counters[op.counter.index] = t; break;
        case Op::Load:
          if (!(is_valid = is_inside)) break;
          value = 0, memcpy(&value, memory + offset, op.size), t = value;
          break;
        case Op::Store:
          if ((is_valid = is_inside)) memcpy(memory + offset, &t, op.size);
          break;
        case Op::Add: t += value; break;
        case Op::And: t &= value; break;
        case Op::Or: t |= value; break;
        case Op::Xor: t ^= value; break;
        case Op::ShiftLeft: t <<= value & 63; break;
        case Op::ShiftRight: t >>= value & 63; break;
        case Op::Multiply: t *= value; break;
        case Op::SkipUnless: k += t == value ? 0 : op.count; break;
        case Op::SkipIf: k += holds(op, value) ? op.count : 0; break;
        case Op::ColdIf: k += holds(op, value) ? 0 : op.count; break;
        case Op::AddIndexed:
          if ((is_valid = t < cells - op.counter.index)) counters[op.counter.index + t] += value;
          break;
        case Op::Call: calls++, result = temp[0]; break;
        case Op::GetResult: t = result; break;
        case Op::GoTo: gone = Version(op.value); return;
        case Op::GetWord: t = tool[op.value]; break;
        case Op::SetWord: tool[op.value] = t; break;
        case Op::GetAddress: t = address_of(operands[op.count]); break;
        case Op::GetExtent: t = extent_of(operands[op.count]); break;
        case Op::GetSelected: t = selected_of(operands[op.count]); break;
        case Op::GetElement: t = element_of(operands[op.count], uint32_t(op.value)); break;
        default: FAIL() << "not modelled";
      }
    }
  }
};

class Trial {
 public:
  Trial(Machine& m, const Bytes& instruction) : m_(m), s_(with_jump(instruction), 0) {}
  const x86::Insn& insn() const { return s_.f.insns[0]; }
  x86::MemoryOperands operands() const { return x86::memory_operands(insn(), std::as_bytes(std::span(s_.bytes))); }

  // Runs the probe, but not the instruction. False: the model does not tell what happens.
  bool run(const Case& c) {
    Plan plan;
    instrument::insert(plan, Where::Before, 0, std::span<const Op>(c.ops));
    s_.live.live_in[0] = c.live;
    for (const MemoryOperand& o : operands()) {
      if (o.base < 16) s_.live.live_in[0].gpr |= uint16_t(1 << o.base);
      if (o.index < 16 && o.extent != x86::Extent::Indexed) s_.live.live_in[0].gpr |= uint16_t(1 << o.index);
      if (o.bit_offset < 16) s_.live.live_in[0].gpr |= uint16_t(1 << o.bit_offset);
      if (o.extent == x86::Extent::Repeated) s_.live.live_in[0].gpr |= 2;
      if (o.extent == x86::Extent::State) s_.live.live_in[0].gpr |= 5;
    }
    x86::RegSet live = s_.live.live_in[0];
    for (const Op& op : c.ops)
      if (op.kind == Op::GetRegister) live.gpr |= uint16_t(1 << op.reg);
    Lowered out = m_.lower(s_, plan);
    EXPECT_LE(out.size, size_bound(s_.f, plan, {reinterpret_cast<uint64_t>(m_.code)}));
    leave_before_instruction(out);

    Model model{m_, c, insn(), operands(), {}, {}, {}, {}, 0, 0, {}, 0, true};
    memcpy(model.counters, m_.counters, sizeof model.counters);
    memcpy(model.memory, m_.memory, sizeof model.memory);
    memcpy(model.tool, m_.block->tool, sizeof model.tool);
    model.run(c.ops);
    if (!model.is_valid) return false;
    m_.block->target = 0;
    m_.block->code_version = 0;
    uint64_t stack[64];
    memcpy(stack, m_.stack, sizeof stack);

    rt::Registers before = c.before;
    load_vectors(c.vectors);
    weir_test_enter(&before, m_.code + out.entry);

    const rt::Registers& after = weir_test_result;
    EXPECT_EQ(memcmp(m_.counters, model.counters, sizeof model.counters), 0) << counters_differ(model);
    EXPECT_EQ(memcmp(m_.memory, model.memory, sizeof model.memory), 0);
    EXPECT_EQ(memcmp(m_.block->tool, model.tool, sizeof model.tool), 0);
    for (unsigned r = 0; r < 16; r++)
      EXPECT_TRUE(after.gpr[r] == c.before.gpr[r] || !(live.gpr >> r & 1)) << "register " << r;
    EXPECT_EQ(after.gpr[x86::RSP], c.before.gpr[x86::RSP]);
    for (int f = 0; f < 6; f++)
      EXPECT_TRUE(!((after.flags ^ c.before.flags) & flag_bits[f]) || !(live.flags >> f & 1)) << "flag " << f;
    EXPECT_EQ(after.flags & DF_bit, c.before.flags & DF_bit);
    EXPECT_EQ(memcmp(stack, m_.stack, sizeof stack), 0) << "the stack was written to";
    EXPECT_EQ(m_.block->target, model.calls);
    EXPECT_EQ(m_.block->code_version, model.gone.value_or(0));
    return true;
  }

 private:
  static Bytes with_jump(Bytes b) {
    b.push_back(0xe9);
    append_u32(b, 0x10000);
    return b;
  }
  // The last mark of a Run that begins with the instruction.
  void leave_before_instruction(const Lowered& out) {
    for (const Mark& mark : out.marks)
      if (mark.kind == Mark::Run && mark.app == 0) {
        Emitter e({m_.code + mark.offset, 16}, {reinterpret_cast<uint64_t>(m_.code + mark.offset)});
        e.jmp(CachePc{reinterpret_cast<uint64_t>(m_.leave())});
        return;
      }
    FAIL() << "no mark of the instruction";
  }
  std::string counters_differ(const Model& model) const {
    std::string text;
    for (uint32_t i = 0; i < cells; i++)
      if (m_.counters[i] != model.counters[i])
        text += fmt::format("counter {}: {:#x}, not {:#x}\n", i, m_.counters[i], model.counters[i]);
    return text;
  }

  Machine& m_;
  Subjects s_;
};

Case random_case(Machine& m, Random& random) {
  Case c{};
  c.live = x86::RegSet::all();
  if (random() % 3) c.live.gpr = random() % 2 ? uint16_t(random()) : uint16_t(random() | random() | random());
  if (random() % 2) c.live.flags = random() % 2 ? 0 : uint8_t(random() % 64);
  for (uint64_t& r : c.before.gpr) r = random() % 4 ? random() : reinterpret_cast<uint64_t>(m.memory + random() % cells);
  c.before.gpr[x86::RSP] = reinterpret_cast<uint64_t>(m.stack + 32);
  c.before.flags = 0x202 | (random() % 2 ? DF_bit : 0);
  for (uint64_t f : flag_bits) c.before.flags |= random() % 2 ? f : 0;
  for (auto& v : c.vectors.zmm)
    for (uint8_t& b : v) b = uint8_t(random());
  for (uint64_t& k : c.vectors.k) k = random();
  for (uint32_t i = 0; i < cells; i++) m.counters[i] = random() % 2 ? random() : 7, m.memory[i] = random();
  for (uint64_t& w : m.stack) w = random();
  for (uint64_t& w : m.block->tool) w = random() % 2 ? random() : random() % 64;
  m.block->self = m.block;
  m.block->app_gs = random() % 2 ? random() : reinterpret_cast<uint64_t>(m.memory);
  m.block->app_fs = fs_base();
  return c;
}

std::string show(const Case& c) {
  std::string text = fmt::format("live {:04x}, flags {:02x}", c.live.gpr, c.live.flags);
  for (const Op& o : c.ops)
    text += fmt::format("\n  {} {} {} by_temp {} size {} r{} count {} counter {} condition {} value {:#x}", int(o.kind),
                        "ABCD"[int(o.temp)], "ABCD"[int(o.other)], o.by_temp, o.size, int(o.reg), o.count, o.counter.index,
                        int(o.condition), uint64_t(o.value));
  return text;
}

Op random_general_op(Random& random, const uint64_t* memory) {
  static constexpr Op::Kind kinds[] = {
      Op::AddCounter, Op::AddClock,   Op::Set,      Op::GetRegister, Op::LoadCounter, Op::StoreCounter, Op::Load,
      Op::Store,      Op::Load,       Op::Store,    Op::Add,         Op::And,         Op::Or,           Op::Xor,
      Op::ShiftLeft,  Op::ShiftRight, Op::Multiply, Op::SkipIf,      Op::SkipUnless,  Op::AddIndexed,   Op::GetWord,
      Op::SetWord,    Op::Call,       Op::Add,      Op::Set,         Op::GetResult};
  Op op{.kind = kinds[random() % std::size(kinds)],
        .temp = Temp(random() % 4),
        .other = Temp(random() % 4),
        .reg = x86::Gpr(random() % 16),
        .count = uint8_t(random() % 4),
        .condition = Condition(random() % 4),
        .counter = {uint32_t(random() % cells)},
        .value = random_value(random)};
  bool may_take_temp = op.kind == Op::AddCounter || op.kind == Op::Set || op.kind == Op::Add ||
                       (op.kind >= Op::And && op.kind <= Op::AddIndexed);
  op.by_temp = may_take_temp && random() % 2;
  if (op.kind == Op::Load || op.kind == Op::Store) {
    op.size = uint8_t(1 << random() % 4);
    op.value = int64_t(random() % 64);
  }
  if (op.kind == Op::Set && random() % 2) op.value = reinterpret_cast<int64_t>(memory + random() % cells);
  if (op.kind == Op::GetWord || op.kind == Op::SetWord) op.value = int64_t(random() % words);
  if (op.kind == Op::Call && random() % 2) op.kind = Op::AddCounter, op.by_temp = false;
  return op;
}

// No temporary is read before it is set; no result, before there was a call.
std::vector<Op> beginning(Machine& m, Random& random) {
  std::vector<Op> ops;
  for (int t = 0; t < temps; t++)
    ops.push_back(
        {.kind = random() % 2 ? Op::Set : Op::GetRegister,
         .temp = Temp(t),
         .reg = x86::Gpr(random() % 16),
         .value = random() % 2 ? reinterpret_cast<int64_t>(m.memory + random() % (cells - 16)) : int64_t(random() % 40)});
  ops.push_back({.kind = Op::Call});
  return ops;
}

TEST(Operations, Random) {
  Machine m;
  Random random(11);
  int valid = 0;
  Trial trial(m, {0x90});
  for (int round = 0; round < 40'000; round++) {
    Case c = random_case(m, random);
    c.ops = beginning(m, random);
    for (uint64_t n = random() % 14; n > 0; n--) c.ops.push_back(random_general_op(random, m.memory));
    SCOPED_TRACE(fmt::format("round {}: {}", round, show(c)));
    valid += trial.run(c);
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(valid, 15'000);
}

// In line or out of it: the program's state is what it was.
TEST(Operations, GoToAnotherVersion) {
  Machine m;
  Random random(13);
  int valid = 0;
  Trial trial(m, {0x90});
  for (int round = 0; round < 20'000; round++) {
    Case c = random_case(m, random);
    c.ops = beginning(m, random);
    auto add_some = [&] {
      for (uint64_t n = random() % 5; n > 0; n--) {
        Op op = random_general_op(random, m.memory);
        if (op.kind != Op::SkipIf && op.kind != Op::SkipUnless) c.ops.push_back(op);
      }
    };
    Op go{.kind = Op::GoTo, .value = int64_t(random() % 3 + 1)};
    add_some();
    Op asks{.kind = random() % 2 ? Op::ColdIf : Op::SkipIf,
            .temp = Temp(random() % 4),
            .count = 2,
            .condition = Condition(random() % 4)};
    asks.value = random_value(random);
    c.ops.insert(c.ops.end(), {asks, {.kind = Op::AddCounter, .value = 3}, go});
    add_some();
    if (random() % 2) c.ops.push_back(go);
    SCOPED_TRACE(fmt::format("round {}: {}", round, show(c)));
    valid += trial.run(c);
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(valid, 7'000);
}

// Parts out of line, in one another too, that are come to or not.
TEST(Operations, ColdParts) {
  Machine m;
  Random random(12);
  int valid = 0;
  Trial trial(m, {0x90});
  for (int round = 0; round < 20'000; round++) {
    Case c = random_case(m, random);
    c.ops = beginning(m, random);
    auto add_some = [&](size_t most, bool may_skip) {
      size_t n = random() % (most + 1);
      for (size_t i = 0; i < n; i++) {
        Op op = random_general_op(random, m.memory);
        bool skips = op.kind == Op::SkipIf || op.kind == Op::SkipUnless;
        if (skips && (!may_skip || op.count >= n - i)) op.kind = Op::Set;
        c.ops.push_back(op);
      }
      return n;
    };
    auto add_cold = [&](auto& self, int depth) -> size_t {
      size_t at = c.ops.size();
      c.ops.push_back({.kind = Op::ColdIf,
                       .temp = Temp(random() % 4),
                       .other = Temp(random() % 4),
                       .by_temp = random() % 2 == 0,
                       .condition = Condition(random() % 4),
                       .value = random() % 2 ? 7 : random_value(random)});
      size_t n = add_some(3, true);
      if (depth && random() % 2) n += self(self, depth - 1);
      n += add_some(2, true);
      c.ops[at].count = uint8_t(n);
      return n + 1;
    };
    add_some(2, true);
    add_cold(add_cold, 2);
    add_some(2, true);
    add_cold(add_cold, 0);
    SCOPED_TRACE(fmt::format("round {}: {}", round, show(c)));
    valid += trial.run(c);
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(valid, 8'000);
}

// Operands of every kind: their addresses, extents and elements.
struct Form {
  const char* text;
  Bytes bytes;
  bool (*is_here)() = nullptr;
};
const Form forms[] = {
    {"mov rax, [rbx]", {0x48, 0x8b, 0x03}},
    {"mov rax, [rsp + 8]", {0x48, 0x8b, 0x44, 0x24, 8}},
    {"mov rax, [rbp + rcx*8 - 0x1000]", {0x48, 0x8b, 0x84, 0xcd, 0, 0xf0, 0xff, 0xff}},
    {"mov [r13 + r12*4 + 5], r9d", {0x47, 0x89, 0x4c, 0xa5, 5}},
    {"mov eax, [r12]", {0x41, 0x8b, 0x04, 0x24}},
    {"mov eax, [r13]", {0x41, 0x8b, 0x45, 0}},
    {"add [rax + rax], al", {0, 0x04, 0}},
    {"mov eax, [rip + 0x100]", {0x8b, 0x05, 0, 1, 0, 0}},
    {"mov eax, [0x12345678]", {0x8b, 0x04, 0x25, 0x78, 0x56, 0x34, 0x12}},
    {"mov eax, [0xffffffff80000000]", {0x8b, 0x04, 0x25, 0, 0, 0, 0x80}},
    {"mov eax, [rcx*4 + 0x40]", {0x8b, 0x04, 0x8d, 0x40, 0, 0, 0}},
    {"movabs al, [0x1122334455667788]", {0xa0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11}},
    {"mov eax, [ebx + esi*2 - 4]", {0x67, 0x8b, 0x44, 0x73, 0xfc}},
    {"mov eax, [eip + 0x100]", {0x67, 0x8b, 0x05, 0, 1, 0, 0}},
    {"mov rax, fs:[0x28]", {0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0}},
    {"mov rax, fs:[rdi - 8]", {0x64, 0x48, 0x8b, 0x47, 0xf8}},
    {"mov rax, gs:[rdx + r15*8]", {0x65, 0x4a, 0x8b, 0x04, 0xfa}},
    {"mov rax, gs:[0x10]", {0x65, 0x48, 0x8b, 0x04, 0x25, 0x10, 0, 0, 0}},
    {"push rax", {0x50}},
    {"push ax", {0x66, 0x50}},
    {"pop rbx", {0x5b}},
    {"push [rsp + 16]", {0xff, 0x74, 0x24, 16}},
    {"pop [rsp + 16]", {0x8f, 0x44, 0x24, 16}},
    {"call [rax + 8]", {0xff, 0x50, 8}},
    {"ret", {0xc3}},
    {"leave", {0xc9}},
    {"enter 32, 0", {0xc8, 32, 0, 0}},
    {"enter 32, 2", {0xc8, 32, 0, 2}},
    {"xlat", {0xd7}},
    {"xlat fs:[rbx]", {0x64, 0xd7}},
    {"movsb", {0xa4}},
    {"lodsq", {0x48, 0xad}},
    {"scasw", {0x66, 0xaf}},
    {"rep movsb", {0xf3, 0xa4}},
    {"rep movsq", {0xf3, 0x48, 0xa5}},
    {"rep stosd", {0xf3, 0xab}},
    {"repe cmpsb", {0xf3, 0xa6}},
    {"repne scasb", {0xf2, 0xae}},
    {"rep lodsw fs:[rsi]", {0x64, 0xf3, 0x66, 0xad}},
    {"rep movsd [edi], [esi]", {0x67, 0xf3, 0xa5}},
    {"bt [rdi], eax", {0x0f, 0xa3, 0x07}},
    {"bts [rdi + rcx*4 + 8], rax", {0x48, 0x0f, 0xab, 0x44, 0x8f, 8}},
    {"btr [rdi], ax", {0x66, 0x0f, 0xb3, 0x07}},
    {"btc [rip + 0x100], eax", {0x0f, 0xbb, 0x05, 0, 1, 0, 0}},
    {"bt [rax], eax", {0x0f, 0xa3, 0x00}},
    {"bt gs:[rbx + rsi*2], rdx", {0x65, 0x48, 0x0f, 0xa3, 0x14, 0x73}},
    {"clflush [rax + 3]", {0x0f, 0xae, 0x78, 3}},
    {"prefetcht0 [rbx + rcx]", {0x0f, 0x18, 0x0c, 0x0b}},
    {"fxsave [rdi]", {0x0f, 0xae, 0x07}},
    {"xsave [rdi]", {0x0f, 0xae, 0x27}},
    {"xsavec [rsp + 64]", {0x0f, 0xc7, 0x64, 0x24, 64}},
    {"xrstor [rdi]", {0x0f, 0xae, 0x2f}},
    {"cmpxchg16b [rsi]", {0x48, 0x0f, 0xc7, 0x0e}},
    {"maskmovdqu xmm5, xmm6", {0x66, 0x0f, 0xf7, 0xee}},
    {"vmaskmovps ymm1, ymm5, [rdi]", {0xc4, 0xe2, 0x55, 0x2c, 0x0f}, has_avx2},
    {"vmaskmovpd [rdi + rcx*8], xmm5, xmm1", {0xc4, 0xe2, 0x51, 0x2f, 0x0c, 0xcf}, has_avx2},
    {"vpmaskmovq ymm1, ymm6, [rax]", {0xc4, 0xe2, 0xcd, 0x8c, 0x08}, has_avx2},
    {"vpgatherdd ymm1, [rax + ymm5*4 + 8], ymm6", {0xc4, 0xe2, 0x4d, 0x90, 0x4c, 0xa8, 8}, has_avx2},
    {"vpgatherqd xmm1, [rax + ymm5*8], xmm6", {0xc4, 0xe2, 0x4d, 0x91, 0x0c, 0xe8}, has_avx2},
    {"vgatherdpd ymm1, [rax + xmm5], ymm6", {0xc4, 0xe2, 0xcd, 0x92, 0x0c, 0x28}, has_avx2},
    {"vpgatherdd zmm1{k3}, [rax + zmm21*4]", {0x62, 0xf2, 0x7d, 0x43, 0x90, 0x0c, 0xa8}, has_avx512},
    {"vpscatterqq [rax + zmm5*8]{k3}, zmm1", {0x62, 0xf2, 0xfd, 0x4b, 0xa1, 0x0c, 0xe8}, has_avx512},
    {"vmovdqu8 zmm1{k3}, [rdi]", {0x62, 0xf1, 0x7f, 0x4b, 0x6f, 0x0f}, has_avx512},
    {"vmovdqu16 [rdi + 64]{k3}, ymm1", {0x62, 0xf1, 0xff, 0x2b, 0x7f, 0x4f, 2}, has_avx512},
    {"vmovdqu32 [rdi]{k3}, zmm1", {0x62, 0xf1, 0x7e, 0x4b, 0x7f, 0x0f}, has_avx512},
    {"vmovapd zmm1{k3}, [r9]", {0x62, 0xd1, 0xfd, 0x4b, 0x28, 0x09}, has_avx512},
    {"vpcompressd [rdi]{k3}, zmm1", {0x62, 0xf2, 0x7d, 0x4b, 0x8b, 0x0f}, has_avx512},
    {"vpexpandq zmm1{k3}, [rdi]", {0x62, 0xf2, 0xfd, 0x4b, 0x89, 0x0f}, has_avx512},
    {"vaddps zmm1{k3}, zmm2, [rdi]{1to16}", {0x62, 0xf1, 0x6c, 0x5b, 0x58, 0x0f}, has_avx512},
    {"vbroadcasti32x4 zmm1{k3}, [rdi]", {0x62, 0xf2, 0x7d, 0x4b, 0x5a, 0x0f}, has_avx512},
};

TEST(Operations, Operands) {
  Machine m;
  Random random(13);
  for (const Form& form : forms) {
    if (form.is_here && !form.is_here()) continue;
    Trial trial(m, form.bytes);
    auto operands = trial.operands();
    ASSERT_GT(operands.size(), 0u) << form.text;
    for (int round = 0; round < 400; round++) {
      Case c = random_case(m, random);
      if (random() % 4 == 0) c.before.gpr[x86::RCX] = random() % 3;
      c.before.gpr[x86::RCX] |= c.before.gpr[x86::RCX] == 0;  // (where nothing is accessed there is no address)
      if (operands[0].wraps_at_32_bits && operands[0].extent == x86::Extent::Repeated)  // (and does not wrap)
        c.before.gpr[x86::RCX] = random() << 32 | (random() % 1000 + 1), c.before.gpr[x86::RSI] |= 1 << 30,
        c.before.gpr[x86::RDI] |= 1 << 30;
      uint32_t cell = 10;
      auto keep = [&](Op op) {
        op.temp = Temp(random() % 4);
        c.ops.push_back(op);
        c.ops.push_back({.kind = Op::StoreCounter, .temp = op.temp, .counter = {cell++}});
      };
      for (uint8_t n = 0; n < operands.size(); n++) {
        const MemoryOperand& o = operands[n];
        bool has_elements =
            o.extent == x86::Extent::Masked || o.extent == x86::Extent::Packed || o.extent == x86::Extent::Indexed;
        if (o.extent != x86::Extent::Indexed) keep({.kind = Op::GetAddress, .count = n});
        keep({.kind = Op::GetExtent, .count = n});
        if (has_elements) keep({.kind = Op::GetSelected, .count = n});
        if (o.extent == x86::Extent::Indexed)
          for (uint32_t i = 0; i < o.size / o.element; i += 3) keep({.kind = Op::GetElement, .count = n, .value = i});
      }
      if (random() % 2)
        for (int t = 0; t < temps; t++) c.ops.push_back({.kind = Op::Set, .temp = Temp(t), .value = t});
      SCOPED_TRACE(fmt::format("{}, round {}: {}", form.text, round, show(c)));
      EXPECT_TRUE(trial.run(c));
      ASSERT_FALSE(HasFailure());
    }
  }
}

}  // namespace
}  // namespace weir::instrument
