// Probes with operations over memory operands and numbers, beyond those of probe.cc.
//
// All temporaries of a probe have registers from its begin to its end: dead ones first, else those of the program, which wait in
// spill[0] to spill[3]. Where an operation writes flags that are live, they wait in rax from the begin of the probe to its end, and the
// program's rax in its own slot. What one operation needs beyond that is borrowed for it alone. An access to memory (Load, Store,
// GetTarget) may fault: the mark says where everything waits.
//
//     mov gs:[spill0], rbx      a temporary
//     mov gs:[rax], rax ; lahf ; seto al
//     lea rbx, [rsp + rcx*8 + 16] ; shr rbx, 12 ; …
//     cmp rbx, … ; jae cold     behind the function: operations ; jmp back
//     back: …
//     add al, 0x7f ; sahf ; mov rax, gs:[rax]
//     mov rbx, gs:[spill0]

#include <bit>

#include "base/processor.h"
#include "instrument/lowering.h"
#include "instrument/operands.h"
#include "instrument/operations.h"
#include "rt/buffer.h"

namespace weir::instrument {

using x86::Extent;
using x86::Gpr;
using x86::MaskIn;
using x86::MemoryOperand;

namespace {

constexpr uint8_t arithmetic_flags = 0x3f;
constexpr uint16_t not_rsp = uint16_t(~(1 << x86::RSP));
constexpr uint32_t gs_own_rax = offsetof(rt::ThreadBlock, more_spills), gs_borrowed = gs_own_rax + 8,
                   gs_indices = offsetof(rt::ThreadBlock, indices), gs_fs = offsetof(rt::ThreadBlock, app_fs),
                   gs_next = offsetof(rt::ThreadBlock, buffer) + offsetof(rt::BufferState, next),
                   gs_limit = offsetof(rt::ThreadBlock, buffer) + offsetof(rt::BufferState, limit);

bool fits(int64_t value) { return value == int32_t(value); }
Gpr lowest(uint16_t set) { return static_cast<Gpr>(std::countr_zero(set)); }
uint16_t bit(uint8_t r) { return r < 16 ? uint16_t(1 << r) : uint16_t{0}; }
bool is_power_of_two(uint64_t value) { return std::has_single_bit(value); }
uint8_t log2_of(uint64_t value) { return static_cast<uint8_t>(std::countr_zero(value)); }

Emitter::Condition condition_of(Condition c) {
  switch (c) {
    case Condition::Equal: return Emitter::Equal;
    case Condition::NotEqual: return Emitter::NotEqual;
    case Condition::Below: return Emitter::Below;
    case Condition::AboveOrEqual: return Emitter::AboveOrEqual;
  }
  CHECK(false);
}

uint32_t gs_word(const Op& op) {
  CHECK(op.value >= 0 && op.value < int64_t{sizeof(rt::ThreadBlock::tool) / 8});
  return static_cast<uint32_t>(offsetof(rt::ThreadBlock, tool) + 8 * static_cast<size_t>(op.value));
}

bool skips(const Op& op) { return op.kind == Op::SkipIf || op.kind == Op::SkipUnless; }

bool uses_value(Op::Kind kind) {
  return kind == Op::AddCounter || kind == Op::Set || kind == Op::Add || (kind >= Op::And && kind <= Op::AddIndexed);
}

uint16_t temps_of(const Op& op) {
  auto own = uint16_t(1 << int(op.temp)), other = uint16_t(1 << int(op.other));
  switch (op.kind) {
    case Op::AddCounter: return op.by_temp ? other : uint16_t{0};
    case Op::AddClock:
    case Op::EndRecord:
    case Op::GoTo: return 0;
    case Op::Call: return 3;
    case Op::Load:
    case Op::Store: return own | other;
    default: return op.by_temp && uses_value(op.kind) ? own | other : own;
  }
}

// The operand that the operation is about, if it is about one.
bool names_operand(Op::Kind kind) { return kind >= Op::GetAddress && kind <= Op::GetElement; }

bool writes_flags(const Op& op) {
  switch (op.kind) {
    case Op::And:
    case Op::Or:
    case Op::Xor:
    case Op::ShiftLeft:
    case Op::ShiftRight:
    case Op::Multiply:
    case Op::SkipUnless:
    case Op::SkipIf:
    case Op::ColdIf:
    case Op::Call:  // (the door that keeps them is the slow one)
    case Op::AddIndexed:
    case Op::GetExtent:
    case Op::GetSelected:
    case Op::BeginRecord:
    case Op::EndRecord: return true;
    case Op::AddCounter: return op.by_temp;
    default: return false;
  }
}
// Is the address one that only arithmetic with flags tells?
bool writes_flags(const MemoryOperand& o, const Processor& processor) {
  bool adds_base = o.segment == x86::Segment::Gs || (o.segment == x86::Segment::Fs && !processor.has_fsgsbase);
  return adds_base || o.extent == Extent::BitString || o.extent == Extent::Line || o.extent == Extent::Repeated;
}

uint16_t registers_of(const MemoryOperand& o) {
  auto set = uint16_t(bit(o.base) | bit(o.bit_offset));
  if (o.extent != Extent::Indexed) set |= bit(o.index);
  if (o.extent == Extent::Repeated) set |= bit(x86::RCX);
  if (o.extent == Extent::State) set |= bit(x86::RAX) | bit(x86::RDX);
  return set;
}

// The general register that an indirect jump or call goes to; no_register: it is in memory.
uint8_t target_register(const x86::Insn& insn, std::span<const std::byte> bytes) {
  auto modrm = static_cast<uint8_t>(bytes[insn.shape->modrm_offset]);
  if (modrm >> 6 != 3) return x86::no_register;
  size_t opcode = insn.shape->modrm_offset - 1u;
  auto before = opcode ? static_cast<uint8_t>(bytes[opcode - 1]) : uint8_t{0};
  bool is_extended = (before & 0xf0) == 0x40 && before & 1;
  return (modrm & 7) | is_extended << 3;
}

}  // namespace

// Registers are given to temporaries; flags that are live are put away.
Operations::Operations(Lowering& lowering, const ProbeState& state) : l_(lowering), e_(lowering.e_), s_(state) {
  if (s_.insn) bytes_ = l_.bytes_of(*s_.insn), operands_ = x86::memory_operands(*s_.insn, bytes_);
}

const Processor& Operations::processor() const { return l_.processor(); }

const MemoryOperand& Operations::operand_of(const Op& op) const {
  CHECK(op.count < operands_.size());
  return operands_[op.count];
}

void Operations::begin(std::span<const Op> ops, x86::RegSet live) {
  bool wants_flags = false, may_fault = false;
  for (const Op& op : ops) {
    CHECK(op.kind < Op::PushFrame);
    s_.temps_used |= temps_of(op);
    wants_flags |= writes_flags(op);
    may_fault |= op.kind == Op::Load || op.kind == Op::Store || op.kind == Op::GetTarget;
    if (op.kind == Op::GetRegister) s_.wanted |= bit(op.reg);
    if (names_operand(op.kind)) s_.wanted |= registers_of(operand_of(op)), wants_flags |= writes_flags(operand_of(op), processor());
    if (op.kind == Op::GetTarget) want_target(wants_flags);
  }
  s_.flags_free = !(live.flags & arithmetic_flags) || wants_flags;
  s_.flags_in_rax = wants_flags && live.flags & arithmetic_flags;
  s_.with_overflow = live.flags & x86::OF;
  s_.wanted &= not_rsp;
  s_.dead = uint16_t(~live.gpr & not_rsp & ~s_.wanted), s_.others = uint16_t(not_rsp & ~s_.wanted & ~s_.dead);
  s_.begin = e_.offset();
  l_.mark(Mark::Exact, s_.app, 0, s_.begin);
  if (s_.flags_in_rax) {
    s_.rax_spilled = (live.gpr | s_.wanted) & bit(x86::RAX);
    exclude(x86::RAX);
    s_.restore |= rt::RestoreFlags;
  }
  for (int n = 0; n < temps; n++) {
    if (!(s_.temps_used >> n & 1)) continue;
    bool spilled = false;
    s_.temp[n] = take(spilled);
    if (!spilled) continue;
    e_.mov(thread(gs_spill(n)), s_.temp[n]);
    s_.temps_spilled |= uint16_t(1 << n);
    constexpr uint8_t restores[temps] = {rt::RestoreSpill0, rt::RestoreSpill1, rt::RestoreSpill2, rt::RestoreSpill3};
    s_.restore |= restores[n];
    s_.spilled |= uint16_t(s_.temp[n] << 4 * n);
  }
  if (s_.rax_spilled) e_.mov(thread(gs_own_rax), x86::RAX);
  if (s_.flags_in_rax) e_.lahf();
  if (s_.flags_in_rax && s_.with_overflow) e_.seto_al();
  if (may_fault) l_.mark(Mark::Middle, s_.app, s_.restore, s_.begin, s_.spilled);
}

void Operations::end() {
  if (s_.flags_in_rax && s_.with_overflow) e_.add_al(0x7f);  // overflows if it was 1
  if (s_.flags_in_rax) e_.sahf();
  if (s_.rax_spilled) e_.mov(x86::RAX, thread(gs_own_rax));
  for (int n = 0; n < temps; n++)
    if (s_.temps_spilled >> n & 1) e_.mov(s_.temp[n], thread(gs_spill(n)));
}

void Operations::want_target(bool& wants_flags) {
  CHECK(s_.insn);
  if (s_.insn->kind() == x86::Kind::CallIndirect || s_.insn->kind() == x86::Kind::JumpIndirect)
    if (uint8_t r = target_register(*s_.insn, bytes_); r != x86::no_register) s_.wanted |= bit(r);
  for (const MemoryOperand& o : operands_) s_.wanted |= registers_of(o), wants_flags |= writes_flags(o, processor());
}

Gpr Operations::take(bool& spilled) {
  constexpr uint16_t no_arguments = 1 << x86::R10 | 1 << x86::R11;  // nobody waits for them at a call
  spilled = s_.dead == 0;
  Gpr r = lowest(s_.dead                      ? s_.dead
                 : (s_.others & no_arguments) ? s_.others & no_arguments
                 : s_.others                  ? s_.others
                                              : s_.wanted);
  exclude(r);
  return r;
}

void Operations::exclude(Gpr r) {
  for (uint16_t* set : {&s_.dead, &s_.others, &s_.wanted}) *set &= uint16_t(~bit(r));
}

// A register for one operation.
Operations::Borrowed::Borrowed(Operations& o) : o_(o), before_(o.s_), slot_(gs_borrowed + 8 * o.borrowed_) {
  CHECK(o.borrowed_ < most_borrowed);
  reg = o.take(spilled_);
  o.borrowed_regs_[o.borrowed_++] = spilled_ ? reg : x86::RSP;
  if (spilled_) o.e_.mov(thread(slot_), reg);
}
Operations::Borrowed::~Borrowed() {
  if (spilled_) o_.e_.mov(reg, thread(slot_));
  o_.borrowed_--;
  o_.s_ = before_;
}

// Where the program's register waits; 0: it is where it belongs.
uint32_t Operations::slot_of(Gpr r) const {
  for (int n = 0; n < temps; n++)
    if (s_.temps_spilled >> n & 1 && s_.temp[n] == r) return gs_spill(n);
  if (r == x86::RAX && s_.rax_spilled) return gs_own_rax;
  for (uint32_t n = 0; n < borrowed_; n++)
    if (borrowed_regs_[n] == r && r != x86::RSP) return gs_borrowed + 8 * n;
  return 0;
}

// t = the program's register.
void Operations::get_register(Gpr t, Gpr r) {
  if (uint32_t slot = slot_of(r)) e_.mov(t, thread(slot));
  else if (t != r) e_.mov(t, r);
}

// What has the program's register: itself, or t, to which it is taken.
Gpr Operations::have_register(Gpr t, Gpr r) {
  if (!slot_of(r)) return r;
  get_register(t, r);
  return t;
}

// t = base + index * scale + displacement + segment, as the operand says; t = … + t * by, if `by` is given.
void Operations::address(Gpr t, const MemoryOperand& o, uint8_t by) {
  bool has_base = o.base != x86::no_register, has_index = o.index != x86::no_register && o.extent != Extent::Indexed;
  auto disp = static_cast<int32_t>(o.displacement);
  if (o.index_size == 1 && has_index) {  // xlat
    e_.movzx_byte(t, have_register(t, static_cast<Gpr>(o.index)));
    by = 1, has_index = false;
  }
  if (!has_base && !has_index && !by) {
    e_.set(t, uint64_t(o.wraps_at_32_bits ? o.displacement & 0xffffffff : o.displacement));
  } else if (!fits(o.displacement)) {  // [rip + …], as the address that it is
    CHECK(!has_base && !has_index);
    Borrowed b(*this);
    e_.movabs(b.reg, uint64_t(o.displacement));
    lea(t, {.base = b.reg, .index = t, .scale = by}, o.wraps_at_32_bits);
  } else {
    Address a{.disp = disp};
    std::optional<Borrowed> other;
    auto free = [&]() -> Gpr {  // t, if nothing is in it yet
      if (!by && a.base != t) return t;
      CHECK(!other);
      return other.emplace(*this).reg;
    };
    if (by && has_base && has_index) {  // one after the other
      Borrowed b(*this);
      Gpr base = have_register(b.reg, static_cast<Gpr>(o.base));
      lea(t, {.base = base, .index = t, .scale = by});
      by = 0;
      Gpr index = have_register(b.reg, static_cast<Gpr>(o.index));
      lea(t, {.base = t, .index = index, .scale = o.scale, .disp = disp}, o.wraps_at_32_bits);
    } else {
      if (has_base) a.base = have_register(slot_of(Gpr(o.base)) ? free() : t, static_cast<Gpr>(o.base));
      if (has_index)
        a.index = have_register(slot_of(Gpr(o.index)) ? free() : t, static_cast<Gpr>(o.index)), a.scale = o.scale;
      if (by) a.index = t, a.scale = by;
      lea(t, a, o.wraps_at_32_bits);
    }
  }
  if (o.segment == x86::Segment::Gs) e_.add(t, thread(gs_app));
  if (o.segment != x86::Segment::Fs) return;
  if (!processor().has_fsgsbase) return e_.add(t, thread(gs_fs));
  Borrowed b(*this);
  e_.rdfsbase(b.reg);
  lea(t, {.base = t, .index = b.reg});
}

// t = rcx, or ecx.
void Operations::get_count(Gpr t, const MemoryOperand& o) {
  get_register(t, x86::RCX);
  if (o.wraps_at_32_bits) e_.mov32(t, t);
}

// r = 1, or -1 where the direction flag is set. Only an instruction that moves on tells, without a stack: lodsb.
void Operations::get_direction(Gpr r) {
  constexpr uint32_t gs_self = offsetof(rt::ThreadBlock, self);
  bool keeps_rsi = r != x86::RSI, keeps_rax = r != x86::RAX;
  uint32_t slot = gs_borrowed + 8 * borrowed_, rax_slot = slot + 8;
  CHECK(borrowed_ + 2 <= most_borrowed);
  if (keeps_rsi) e_.mov(thread(slot), x86::RSI);
  if (keeps_rax) e_.mov(thread(rax_slot), x86::RAX);
  e_.mov(x86::RSI, thread(gs_self));
  e_.lodsb();
  e_.sub(x86::RSI, thread(gs_self));
  if (r != x86::RSI) e_.mov(r, x86::RSI);
  if (keeps_rsi) e_.mov(x86::RSI, thread(slot));
  if (keeps_rax) e_.mov(x86::RAX, thread(rax_slot));
}

void Operations::get_address(Gpr t, const MemoryOperand& o) {
  if (o.extent == Extent::BitString) {
    get_register(t, static_cast<Gpr>(o.bit_offset));
    if (o.size == 2) e_.movsx_word(t, t);
    if (o.size == 4) e_.movsxd(t, t);
    e_.shift(Emitter::RightSigned, t, log2_of(o.size) + 3);
    return address(t, o, static_cast<uint8_t>(o.size));
  }
  if (o.extent != Extent::Repeated) {
    address(t, o, 0);
    if (o.extent == Extent::Line) e_.arithmetic(Emitter::And, t, -static_cast<int32_t>(o.size));
    return;
  }
  // Downwards the first one is the highest: less (count - 1) * size.
  {
    Borrowed down(*this);
    get_direction(down.reg);
    get_count(t, o);
    e_.lea(t, at(t, -1));
    e_.shift(Emitter::RightSigned, down.reg, 1);
    e_.arithmetic(Emitter::And, t, down.reg);
    e_.imul(t, t, -static_cast<int32_t>(o.size));
  }
  address(t, o, 1);
}

void Operations::get_selected(Gpr t, const MemoryOperand& o) {
  uint32_t elements = o.size / o.element;
  uint64_t all = elements == 64 ? ~uint64_t{0} : (uint64_t{1} << elements) - 1;
  switch (o.mask_in) {
    case MaskIn::Nothing: return e_.set(t, all);
    case MaskIn::K:
      if (o.mask_bits > 16) e_.kmovq(t, Mask{o.mask});
      else e_.kmovw(t, Mask{o.mask});
      break;
    case MaskIn::Vector:
      if (o.element == 1) e_.pmovmskb(t, Xmm{o.mask});
      else e_.vmovmsk(t, Xmm{o.mask}, o.element == 8, o.mask_bits * o.element == 32);
      break;
    case MaskIn::Mmx: e_.pmovmskb_mmx(t, o.mask); break;
  }
  uint32_t bits = o.mask_bits;
  if (o.mask_in == MaskIn::K && bits < 64) and_mask(t, (uint64_t{1} << bits) - 1);
  for (; bits > elements; bits /= 2) {  // several bits for an element: any of them selects it
    Borrowed b(*this);
    e_.mov(b.reg, t);
    e_.shift(Emitter::Right, b.reg, static_cast<uint8_t>(bits / 2));
    e_.arithmetic(Emitter::Or, t, b.reg);
    and_mask(t, (uint64_t{1} << bits / 2) - 1);
  }
}

void Operations::and_mask(Gpr t, uint64_t mask) {
  if (mask == 0xffffffff) e_.mov32(t, t);
  else if (mask == (mask & 0x7fffffff)) e_.arithmetic(Emitter::And, t, static_cast<int32_t>(mask));
  else if (mask <= 0xffffffff) e_.and32(t, static_cast<uint32_t>(mask));
  else {
    Borrowed b(*this);
    e_.movabs(b.reg, mask);
    e_.arithmetic(Emitter::And, t, b.reg);
  }
}

// The components of the extended state that edx:eax asks for have fixed places; the instructions that leave gaps out take no more.
void Operations::get_state_size(Gpr t) {
  constexpr uint32_t legacy_and_header = 512 + 64;
  Borrowed wanted(*this);
  get_register(wanted.reg, x86::RDX);
  e_.shift(Emitter::Left, wanted.reg, 32);
  get_register(t, x86::RAX);
  e_.mov32(t, t);
  e_.arithmetic(Emitter::Or, wanted.reg, t);
  e_.set(t, legacy_and_header);
  for (const StateComponent& c : processor().state) {  // the last one last
    e_.bt(wanted.reg, c.number);
    e_.skip_if(Emitter::AboveOrEqual, [&] { e_.set(t, c.end); });
  }
}

void Operations::get_extent(Gpr t, const MemoryOperand& o) {
  CHECK(has_extent(o));
  switch (o.extent) {
    case Extent::Repeated:
      get_count(t, o);
      if (o.size > 1) e_.shift(Emitter::Left, t, log2_of(o.size));
      return;
    case Extent::Masked:
    case Extent::Packed:
    case Extent::Indexed:
      get_selected(t, o);
      e_.popcnt(t, t);
      if (o.element > 1) e_.imul(t, t, o.element);
      return;
    case Extent::State:
      if (!o.size) return get_state_size(t);
      break;
    default: break;
  }
  e_.set(t, o.size);
}

void Operations::get_element(Gpr t, const MemoryOperand& o, uint32_t element) {
  CHECK(o.extent == Extent::Indexed && element < o.size / o.element);
  if (o.mask_in == MaskIn::K) e_.vmovdqu64(thread(gs_indices), Zmm{o.index});
  else e_.vmovdqu_ymm(thread(gs_indices), Xmm{o.index});
  uint32_t at = gs_indices + element * o.index_size;
  if (o.index_size == 8) e_.mov(t, thread(at));
  else e_.movsxd(t, thread(at));
  address(t, o, o.scale);
}

void Operations::get_target(Gpr t) {
  CHECK(s_.insn);
  switch (s_.insn->kind()) {
    case x86::Kind::Return:
    case x86::Kind::FarReturn: return e_.mov(t, at(x86::RSP));
    case x86::Kind::CallIndirect:
    case x86::Kind::JumpIndirect: {
      uint8_t r = target_register(*s_.insn, bytes_);
      if (r != x86::no_register) return get_register(t, static_cast<Gpr>(r));
      address(t, operands_[0], 0);
      return e_.load(t, Address{.base = t}.memory(), 8);
    }
    default: return e_.set(t, s_.insn->target.value);
  }
}

// t op= value
void Operations::arithmetic(Emitter::Arithmetic kind, Gpr t, const Op& op) {
  if (op.by_temp) return e_.arithmetic(kind, t, temp(op.other));
  if (kind == Emitter::And && !fits(op.value)) return and_mask(t, uint64_t(op.value));
  if (kind == Emitter::Compare && op.value == 0) return e_.test(t, t);
  if (fits(op.value)) return e_.arithmetic(kind, t, static_cast<int32_t>(op.value));
  Borrowed b(*this);
  e_.movabs(b.reg, uint64_t(op.value));
  e_.arithmetic(kind, t, b.reg);
}

void Operations::multiply(Gpr t, const Op& op) {
  if (op.by_temp) return e_.imul(t, temp(op.other));
  if (op.value > 0 && is_power_of_two(uint64_t(op.value))) return e_.shift(Emitter::Left, t, log2_of(uint64_t(op.value)));
  if (fits(op.value)) return e_.imul(t, t, static_cast<int32_t>(op.value));
  Borrowed b(*this);
  e_.movabs(b.reg, uint64_t(op.value));
  e_.imul(t, b.reg);
}

// Where the count is not in cl, it changes places with what is there.
void Operations::shift(Emitter::Shift kind, Gpr t, const Op& op) {
  if (!op.by_temp) return e_.shift(kind, t, static_cast<uint8_t>(op.value & 63));
  Gpr by = temp(op.other);
  if (by == x86::RCX) return e_.shift_by_cl(kind, t);
  e_.xchg(x86::RCX, by);
  e_.shift_by_cl(kind, t == by ? x86::RCX : t == x86::RCX ? by : t);
  e_.xchg(x86::RCX, by);
}

void Operations::set(Gpr t, const Op& op) {
  if (!op.by_temp) return e_.set(t, uint64_t(op.value));
  if (Gpr from = temp(op.other); from != t) e_.mov(t, from);
}

void Operations::add(Gpr t, const Op& op) {
  if (op.by_temp) return e_.lea(t, sum(t, temp(op.other)));
  if (fits(op.value)) return e_.lea(t, at(t, static_cast<int32_t>(op.value)));
  Borrowed b(*this);
  e_.movabs(b.reg, uint64_t(op.value));
  e_.lea(t, sum(t, b.reg));
}

void Operations::add_to_cell(uint32_t cell, const Op& op) {
  if (op.by_temp) return e_.add(thread(cell), temp(op.other));
  if (s_.flags_free && fits(op.value)) return e_.add(thread(cell), static_cast<int32_t>(op.value));
  Borrowed b(*this);
  e_.mov(b.reg, thread(cell));
  if (fits(op.value)) {
    e_.lea(b.reg, at(b.reg, static_cast<int32_t>(op.value)));
  } else {
    Borrowed value(*this);
    e_.movabs(value.reg, uint64_t(op.value));
    e_.lea(b.reg, sum(b.reg, value.reg));
  }
  e_.mov(thread(cell), b.reg);
}

void Operations::add_indexed(Gpr index, const Op& op) {
  uint32_t cells = gs_counter(op.counter);
  if (op.by_temp) return e_.add(thread(scaled(index, 8, static_cast<int32_t>(cells))), temp(op.other));
  if (fits(op.value)) return e_.add(thread(scaled(index, 8, static_cast<int32_t>(cells))), static_cast<int32_t>(op.value));
  Borrowed b(*this);
  e_.movabs(b.reg, uint64_t(op.value));
  e_.add(thread(scaled(index, 8, static_cast<int32_t>(cells))), b.reg);
}

void Operations::begin_record(Gpr t, uint32_t size) {
  CHECK(size <= rt::max_record);
  e_.mov(t, thread(gs_next));
  e_.cmp(t, thread(gs_limit));
  l_.leads_to_cold(e_.jcc(Emitter::AboveOrEqual), {s_, {}, true, t});
}

// One that neither skips nor leads elsewhere.
void Operations::operate(const Op& op) {
  Gpr t = temp(op.temp);
  switch (op.kind) {
    case Op::AddCounter: return add_to_cell(gs_counter(op.counter), op);
    case Op::AddClock:
      if (l_.register_clock_) return l_.advance_clock(op.value);
      return add_to_cell(gs_clock(s_.app), op);
    case Op::Set: return set(t, op);
    case Op::GetRegister: return get_register(t, op.reg);
    case Op::LoadCounter: return e_.mov(t, thread(gs_counter(op.counter)));
    case Op::StoreCounter: return e_.mov(thread(gs_counter(op.counter)), t);
    case Op::Load: CHECK(fits(op.value)); return e_.load(t, place(op), op.size);
    case Op::Store: CHECK(fits(op.value)); return e_.store(place(op), t, op.size);
    case Op::Add: return add(t, op);
    case Op::Call: return l_.call_with_temps(op, s_.temp[0], s_.temp[1], s_.flags_free);
    case Op::And: return arithmetic(Emitter::And, t, op);
    case Op::Or: return arithmetic(Emitter::Or, t, op);
    case Op::Xor: return arithmetic(Emitter::Xor, t, op);
    case Op::ShiftLeft: return shift(Emitter::Left, t, op);
    case Op::ShiftRight: return shift(Emitter::Right, t, op);
    case Op::Multiply: return multiply(t, op);
    case Op::AddIndexed: return add_indexed(t, op);
    case Op::GetWord: return e_.mov(t, thread(gs_word(op)));
    case Op::SetWord: return e_.mov(thread(gs_word(op)), t);
    case Op::GetResult: return e_.mov(t, thread(offsetof(rt::ThreadBlock, routine_args)));
    case Op::GetAddress: return get_address(t, operand_of(op));
    case Op::GetExtent: return get_extent(t, operand_of(op));
    case Op::GetSelected: return get_selected(t, operand_of(op));
    case Op::GetElement: return get_element(t, operand_of(op), static_cast<uint32_t>(op.value));
    case Op::GetTarget: return get_target(t);
    case Op::BeginRecord: return begin_record(t, static_cast<uint32_t>(op.value));
    case Op::EndRecord: return e_.add(thread(gs_next), static_cast<int32_t>(op.value));
    default: CHECK(false);
  }
}

void Operations::emit(std::span<const Op> ops) {
  struct Skip {
    uint32_t from;
    size_t to;
  };
  std::vector<Skip> open;
  auto arrive = [&](size_t k) {
    for (const Skip& s : open)
      if (s.to == k) e_.comes_here(s.from);
  };
  for (size_t k = 0; k < ops.size(); k++) {
    arrive(k);
    const Op& op = ops[k];
    if (op.kind == Op::GoTo) {
      end();
      l_.placement_.go_to(l_, s_.app, static_cast<Version>(op.value));
      continue;
    }
    if (!skips(op) && op.kind != Op::ColdIf) {
      operate(op);
      continue;
    }
    arithmetic(Emitter::Compare, temp(op.temp), op);
    size_t to = std::min(k + 1 + op.count, ops.size());
    if (skips(op)) {
      open.push_back({e_.jcc(op.kind == Op::SkipUnless ? Emitter::NotEqual : condition_of(op.condition)), to});
      continue;
    }
    l_.leads_to_cold(e_.jcc(condition_of(op.condition)), {s_, ops.subspan(k + 1, to - k - 1)});
    for (const Skip& s : open) CHECK(s.to <= k || s.to >= to);  // nothing skips into it
    k = to - 1;
  }
  arrive(ops.size());
}

// ---- What lowering calls ----

void Lowering::operate(std::span<const Op> ops, x86::RegSet live, AppPc app) {
  Operations operations(*this, {.insn = insn_, .app = app});
  operations.begin(ops, live);
  operations.emit(ops);
  operations.end();
  mark(Mark::Run, app);
}

void Lowering::leads_to_cold(uint32_t from, const ColdPart& part) {
  Tail tail{Tail::Cold, from};
  tail.number = static_cast<uint32_t>(cold_parts_.size());
  tail.back = e_.offset();
  cold_parts_.push_back(part);
  tails_.push_back(tail);
}

void Lowering::emit_cold_part(const Tail& tail) {
  ColdPart part = cold_parts_[tail.number];
  mark(Mark::Middle, part.state.app, part.state.restore, part.state.begin, part.state.spilled);
  if (part.empties_buffer) {
    call_routine(Door::Probe, rt::empty_buffer, 0, 0);
    e_.mov(part.temp, thread(gs_next));
  } else {
    Operations(*this, part.state).emit(part.ops);
  }
  jump_back(tail);
  mark(Mark::Middle, f_.entry);
}

uint32_t operation_bound(const Op& op) {
  constexpr uint32_t address = 176, state = 900, call = 96, leaving = 96, ending = 64;
  uint32_t simple = fits(op.value) ? 32 : 72;
  switch (op.kind) {
    case Op::GetExtent: return state;
    case Op::GetAddress:
    case Op::GetSelected:
    case Op::GetElement:
    case Op::GetTarget: return address;
    case Op::Call: return call;
    case Op::BeginRecord: return call + leaving;
    case Op::ColdIf: return simple + 16;
    case Op::GoTo: return ending + leaving;
    default: return simple;
  }
}

}  // namespace weir::instrument
