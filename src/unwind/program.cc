// Of all registers only what the walker needs is followed: the CFA (of any register), rbx (3), rbp (6), rsp (7) and the return address (16).
// After DWARF 5, section 6.4.2, and the x86-64 ABI's register numbers.
#include "unwind/program.h"

#include <array>
#include <optional>

namespace weir::unwind {

namespace {

using elf::Cursor;
using elf::Vaddr;
using rt::Rule;

constexpr uint64_t rbx = 3, rbp = 6, rsp = 7, return_address = 16;

// Where a register's value of before the call is.
struct Where {
  enum Kind { Unset, Same, Undefined, AtCfa, Expression, Other } kind = Unset;
  int64_t offset = 0;         // AtCfa
  Cursor expression{{}, {}};  // Expression: where it is saved
};

struct Cfa {
  enum Kind { Unset, Register, Expression } kind = Unset;
  uint64_t reg = 0;
  int64_t offset = 0;
  Cursor expression{{}, {}};
};

struct State {
  Cfa cfa;
  Where rbx, rbp, rsp, ra;
};

// ---- Expressions: the few shapes that linkers, compilers and libraries write ------------------------------------------
enum Op : uint8_t {
  deref = 0x06,
  op_and = 0x1a,
  mul = 0x1e,
  plus = 0x22,
  plus_uconst = 0x23,
  shl = 0x24,
  ge = 0x2a,
  lit0 = 0x30,
  lit31 = 0x4f,
  breg0 = 0x70,
  breg16 = 0x80,
};

struct Sum {
  uint64_t reg;
  int64_t offset;
};

// breg R, offset
std::optional<Sum> read_breg(Cursor& c) {
  uint8_t op = c.get<uint8_t>();
  if (!c.ok() || op < breg0 || op > breg16) return std::nullopt;
  Sum sum{static_cast<uint64_t>(op - breg0), c.sleb()};
  return c.ok() ? std::optional(sum) : std::nullopt;
}

// breg R, offset, and nothing else.
std::optional<Sum> as_breg(Cursor c) {
  std::optional<Sum> sum = read_breg(c);
  return sum && c.left() == 0 ? sum : std::nullopt;
}

template <class T>
bool fits(int64_t value) {
  return value == static_cast<T>(value);
}

// rsp + 8 + ((rip & 15) ≥ n) << 3: what linkers say of a PLT, whose entries push a word at byte n.
bool is_plt(Cursor c, Rule& rule) {
  std::optional<Sum> base = read_breg(c), pc = read_breg(c);
  if (!base || !pc || base->reg != rsp || base->offset != 8 || pc->reg != return_address || pc->offset != 0) return false;
  auto literal = [&] {
    uint8_t op = c.get<uint8_t>();
    return op >= lit0 && op <= lit31 ? op - lit0 : -1;
  };
  int mask = literal();
  bool is_it = c.get<uint8_t>() == op_and;
  int n = literal();
  is_it = is_it && c.get<uint8_t>() == ge;
  int shift = literal();
  is_it = is_it && c.get<uint8_t>() == shl && c.get<uint8_t>() == plus;
  if (!c.ok() || c.left() || !is_it || mask != 15 || n < 0 || shift != 3) return false;
  rule.kind = Rule::Plt, rule.offset = n;
  return true;
}

// *(rsp or rbp + offset) + add: a frame that was aligned, with the old rsp saved in it.
bool is_saved(Cursor c, Rule& rule) {
  std::optional<Sum> place = read_breg(c);
  if (!place || c.get<uint8_t>() != deref) return false;
  uint64_t add = 0;
  if (c.left() && c.get<uint8_t>() == plus_uconst) add = c.uleb();
  if (!c.ok() || c.left() || (place->reg != rsp && place->reg != rbp) || !fits<int32_t>(place->offset) || add > INT16_MAX)
    return false;
  rule.kind = place->reg == rsp ? Rule::AtRsp : Rule::AtRbp;
  rule.offset = static_cast<int32_t>(place->offset), rule.add = static_cast<int16_t>(add);
  return true;
}

// *(rsp + offset + reg * scale) + add: the old rsp is saved behind an array.
bool is_saved_behind_array(Cursor c, Rule& rule) {
  std::optional<Sum> place = read_breg(c), index = read_breg(c);
  if (!place || !index || place->reg != rsp || index->reg > 15 || index->offset || !fits<int32_t>(place->offset))
    return false;
  uint8_t scale = c.get<uint8_t>();
  bool is_it = scale >= lit0 && scale <= lit31;
  for (uint8_t op : {mul, plus, deref, plus_uconst}) is_it = is_it && c.get<uint8_t>() == op;
  uint64_t add = c.uleb();
  if (!c.ok() || c.left() || !is_it || add > INT16_MAX) return false;
  rule.kind = Rule::AtIndex;
  rule.offset = static_cast<int32_t>(place->offset), rule.add = static_cast<int16_t>(add);
  rule.reg = static_cast<uint8_t>(index->reg), rule.scale = static_cast<uint8_t>(scale - lit0);
  return true;
}

// The kernel's struct rt_sigframe, as the signal restorers of C libraries describe it.
constexpr int64_t saved_rbp = 120, saved_rsp = 160, saved_rip = 168;

bool is_at(const Where& where, int64_t offset) {
  if (where.kind != Where::Expression) return false;
  std::optional<Sum> place = as_breg(where.expression);
  return place && place->reg == rsp && place->offset == offset;
}

// ---- From a state to a rule -------------------------------------------------------------------------------------------
bool set_rbp(const Where& where, Rule& rule) {
  switch (where.kind) {
    case Where::Unset:
    case Where::Same: rule.rbp = Rule::Same; return true;
    case Where::Undefined:
    case Where::Other: rule.rbp = Rule::Lost; return true;
    case Where::AtCfa:
      rule.rbp = Rule::SavedCfa;
      rule.rbp_offset = static_cast<int32_t>(where.offset);
      return fits<int32_t>(where.offset);
    case Where::Expression: {
      std::optional<Sum> place = as_breg(where.expression);
      bool is_known = place && place->reg == rbp && fits<int32_t>(place->offset);
      rule.rbp = is_known ? Rule::SavedRbp : Rule::Lost;
      rule.rbp_offset = is_known ? static_cast<int32_t>(place->offset) : 0;
      return true;
    }
  }
  return false;
}

void set_rbx(const Where& where, Rule& rule) {
  if (where.kind == Where::Unset || where.kind == Where::Same) return;
  bool is_known = where.kind == Where::AtCfa && where.offset != 0 && fits<int16_t>(where.offset);
  rule.rbx_offset = is_known ? static_cast<int16_t>(where.offset) : Rule::rbx_lost;
}

bool set_cfa(const Cfa& cfa, Rule& rule) {
  if (cfa.kind == Cfa::Expression)
    return is_plt(cfa.expression, rule) || is_saved(cfa.expression, rule) || is_saved_behind_array(cfa.expression, rule);
  if (cfa.kind != Cfa::Register || !fits<int32_t>(cfa.offset) || cfa.reg >= return_address) return false;
  rule.kind = cfa.reg == rsp ? Rule::Rsp : cfa.reg == rbp ? Rule::Rbp : cfa.reg == rbx ? Rule::Rbx : Rule::Reg;
  if (rule.kind == Rule::Reg) rule.reg = static_cast<uint8_t>(cfa.reg);
  rule.offset = static_cast<int32_t>(cfa.offset);
  return true;
}

Rule rule_of(const State& s, bool is_signal_frame) {
  Rule unsupported{.kind = Rule::Unsupported}, rule;
  if (s.ra.kind == Where::Undefined) return {.kind = Rule::End};
  if (!set_cfa(s.cfa, rule)) return unsupported;
  if (rule.kind == Rule::AtRsp && rule.offset == saved_rsp && rule.add == 0 && is_at(s.ra, saved_rip) &&
      is_at(s.rbp, saved_rbp) && is_at(s.rsp, saved_rsp) && is_signal_frame)
    return {.kind = Rule::Signal, .is_interrupted = 1};
  // The caller's rsp is the CFA, its return address below that: all else would need registers that nobody follows.
  if (s.rsp.kind != Where::Unset || s.ra.kind != Where::AtCfa || s.ra.offset != -8) return unsupported;
  if (!set_rbp(s.rbp, rule)) return unsupported;
  set_rbx(s.rbx, rule);
  rule.is_interrupted = is_signal_frame;
  return rule;
}

// ---- Instructions -----------------------------------------------------------------------------------------------------
class Machine {
 public:
  Machine(const elf::Fde& fde, const std::function<void(Vaddr, const Rule&)>& take)
      : fde_(fde), take_(take), at_(fde.range.begin) {}

  void run() {
    if (!run(fde_.cie.instructions)) return give_up();
    initial_ = state_;
    is_initial_ = false;
    if (!run(fde_.instructions)) return give_up();
    emit();
  }

 private:
  void emit() {
    if (at_ < fde_.range.end) take_(at_, rule_of(state_, fde_.cie.is_signal_frame));
  }
  void give_up() {
    if (at_ < fde_.range.end) take_(at_, {.kind = Rule::Unsupported});
  }

  // The rules up to here are for what lies before `to`.
  bool go_to(Vaddr to) {
    if (to < at_ || is_initial_) return false;
    if (to == at_) return true;
    emit();
    at_ = to;
    return true;
  }
  bool advance(uint64_t delta) {
    uint64_t bytes;
    if (__builtin_mul_overflow(delta, fde_.cie.code_align, &bytes) || bytes > UINT64_MAX - at_.value) return false;
    return go_to({at_.value + bytes});
  }

  Where* find(State& s, uint64_t reg) {
    return reg == rbx                        ? &s.rbx
           : reg == rbp                      ? &s.rbp
           : reg == rsp                      ? &s.rsp
           : reg == fde_.cie.return_register ? &s.ra
                                             : nullptr;
  }
  void set(uint64_t reg, Where where) {
    if (Where* w = find(state_, reg)) *w = where;
  }
  void restore(uint64_t reg) {
    if (Where* w = find(state_, reg)) *w = *find(initial_, reg);
  }
  int64_t factored(int64_t offset) const {
    return static_cast<int64_t>(static_cast<uint64_t>(offset) * static_cast<uint64_t>(fde_.cie.data_align));
  }
  void save(uint64_t reg, int64_t offset) { set(reg, {Where::AtCfa, factored(offset)}); }

  bool run(Cursor c) {
    while (c.left())
      if (!step(c) || !c.ok()) return false;
    return true;
  }
  bool step(Cursor& c);

  static constexpr size_t max_remembered = 64;
  const elf::Fde& fde_;
  const std::function<void(Vaddr, const Rule&)>& take_;
  Vaddr at_;
  State state_, initial_;
  bool is_initial_ = true;
  std::vector<State> remembered_;
};

bool Machine::step(Cursor& c) {
  uint8_t op = c.get<uint8_t>();
  switch (op & 0xc0) {
    case 0x40: return advance(op & 0x3f);
    case 0x80: save(op & 0x3f, static_cast<int64_t>(c.uleb())); return true;
    case 0xc0: restore(op & 0x3f); return true;
  }
  auto block = [&] { return c.take(c.uleb()); };
  auto unsigned_offset = [&] { return static_cast<int64_t>(c.uleb()); };
  uint64_t reg;
  switch (op) {
    case 0x00: return true;  // nop
    case 0x01: return go_to(elf::read_pointer(c, fde_.cie.encoding, std::nullopt));
    case 0x02: return advance(c.get<uint8_t>());
    case 0x03: return advance(c.get<uint16_t>());
    case 0x04: return advance(c.get<uint32_t>());
    case 0x05: reg = c.uleb(), save(reg, unsigned_offset()); return true;        // offset_extended
    case 0x06: restore(c.uleb()); return true;                                   // restore_extended
    case 0x07: set(c.uleb(), {Where::Undefined}); return true;                   // undefined
    case 0x08: set(c.uleb(), {Where::Same}); return true;                        // same_value
    case 0x09: reg = c.uleb(), c.uleb(), set(reg, {Where::Other}); return true;  // register
    case 0x0a:                                                                   // remember_state
      if (remembered_.size() == max_remembered) return false;
      remembered_.push_back(state_);
      return true;
    case 0x0b:  // restore_state
      if (remembered_.empty()) return false;
      state_ = remembered_.back();
      remembered_.pop_back();
      return true;
    case 0x0c: reg = c.uleb(), state_.cfa = {Cfa::Register, reg, unsigned_offset()}; return true;   // def_cfa
    case 0x0d: state_.cfa.reg = c.uleb(); return state_.cfa.kind == Cfa::Register;                  // def_cfa_register
    case 0x0e: state_.cfa.offset = unsigned_offset(); return state_.cfa.kind == Cfa::Register;      // def_cfa_offset
    case 0x0f: state_.cfa = {Cfa::Expression, 0, 0, block()}; return true;                          // def_cfa_expression
    case 0x10: reg = c.uleb(), set(reg, {Where::Expression, 0, block()}); return true;              // expression
    case 0x11: reg = c.uleb(), save(reg, c.sleb()); return true;                                    // offset_extended_sf
    case 0x12: reg = c.uleb(), state_.cfa = {Cfa::Register, reg, factored(c.sleb())}; return true;  // def_cfa_sf
    case 0x13: state_.cfa.offset = factored(c.sleb()); return state_.cfa.kind == Cfa::Register;     // def_cfa_offset_sf
    case 0x14: reg = c.uleb(), c.uleb(), set(reg, {Where::Other}); return true;                     // val_offset
    case 0x15: reg = c.uleb(), c.sleb(), set(reg, {Where::Other}); return true;                     // val_offset_sf
    case 0x16: reg = c.uleb(), block(), set(reg, {Where::Other}); return true;                      // val_expression
    case 0x2e: c.uleb(); return true;                                                               // GNU_args_size
    case 0x2f: reg = c.uleb(), save(reg, static_cast<int64_t>(-c.uleb())); return true;  // GNU_negative_offset_extended
    default: return false;
  }
}

}  // namespace

void run(const elf::Fde& fde, const std::function<void(Vaddr, const Rule&)>& take) { Machine(fde, take).run(); }

}  // namespace weir::unwind
