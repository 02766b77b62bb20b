// Probes: abstract operations in the cheapest registers. Dead ones first; when there is none, one is spilled to the thread
// block. Additions write flags only where the flags are dead.
//
// A temporary that is spilled stays so for the whole probe, in spill[0] or spill[1]: the marks say so, as a Load or a Store
// may fault. What a single other operation needs beyond that is borrowed for it alone, through spill[2] and spill[3]: nothing
// can fault there, and a signal waits for the end of the probe.

#include <algorithm>
#include <bit>

#include "instrument/lowering.h"

namespace weir::instrument {

using x86::Gpr;

namespace {

constexpr uint8_t arithmetic_flags = 0x3f;
constexpr uint16_t not_rsp = uint16_t(~(1 << x86::RSP));

// Where the two temporaries of a probe live.
struct Places {
  Gpr reg[2] = {x86::RAX, x86::RAX};
  bool used[2] = {false, false};
  bool spilled[2] = {false, false};
};

bool fits(int64_t value) { return value == int32_t(value); }
int64_t negated(int64_t value) { return int64_t(-uint64_t(value)); }

bool uses_temp(const Op& op, int n, const InlineCode* inline_code, bool register_clock) {
  bool a = n == 0;
  switch (op.kind) {
    case Op::AddCounter:
    case Op::AddClock: return false;
    case Op::PushFrame: return a || !register_clock || op.value;
    case Op::Own: {
      auto needs = inline_code->needs(op, register_clock);
      return a ? needs.a : needs.b;
    }
    case Op::ArriveFrame: return a;
    case Op::Call:
    case Op::PopFrame:
    case Op::ResyncFrames: return true;
    case Op::SetJumpSite:
    case Op::BeginCall:
    case Op::EndCalls:
    case Op::NoteStack:
    case Op::TellStack:
    case Op::GoTo:
    case Op::CallWith: return false;
    case Op::Load:
    case Op::Store: return (op.temp == Temp::A) == a || (op.other == Temp::A) == a;
    default: return (op.temp == Temp::A) == a;
  }
}

// How many registers an operation needs besides temporaries.
int scratch_count(const Op& op, bool flags_free, bool register_clock) {
  if (op.kind == Op::AddClock && register_clock) return 0;
  if (op.kind == Op::AddCounter || op.kind == Op::AddClock) return (flags_free ? 0 : 1) + (fits(op.value) ? 0 : 1);
  return op.kind == Op::Add && !fits(op.value) ? 1 : 0;
}

Gpr lowest(uint16_t set) { return static_cast<Gpr>(std::countr_zero(set)); }

// Registers to be handed out: dead ones, then others, those last that the probe wants to read.
struct Pool {
  uint16_t dead, others, wanted;

  Gpr take(bool& spilled) {
    constexpr uint16_t no_arguments = 1 << x86::R10 | 1 << x86::R11;  // nobody waits for them at a call
    spilled = dead == 0;
    Gpr r = lowest(dead ? dead : others & no_arguments ? others & no_arguments : others ? others : wanted);
    exclude(r);
    return r;
  }
  void exclude(Gpr r) {
    for (uint16_t* set : {&dead, &others, &wanted}) *set &= uint16_t(~(1 << r));
  }
};

// The cell += value, with as many registers as scratch_count() says.
void add_to_cell(Emitter& e, uint32_t cell, int64_t value, bool flags_free, const Gpr (&scratch)[2]) {
  if (flags_free) {
    if (value == 1) return e.inc(thread(cell));
    if (fits(value)) return e.add(thread(cell), int32_t(value));
    e.movabs(scratch[0], uint64_t(value));
    return e.add(thread(cell), scratch[0]);
  }
  e.mov(scratch[0], thread(cell));
  if (fits(value)) {
    e.lea(scratch[0], at(scratch[0], int32_t(value)));
  } else {
    e.movabs(scratch[1], uint64_t(value));
    e.lea(scratch[0], sum(scratch[0], scratch[1]));
  }
  e.mov(thread(cell), scratch[0]);
}

// An operation that neither skips nor needs more than its temporaries and `scratch`.
void emit_op(Emitter& e, const Op& op, const Places& places, const Gpr (&scratch)[2], bool flags_free, AppPc app) {
  Gpr temp = places.reg[static_cast<int>(op.temp)], other = places.reg[static_cast<int>(op.other)];
  switch (op.kind) {
    case Op::AddCounter: return add_to_cell(e, gs_counter(op.counter), op.value, flags_free, scratch);
    case Op::AddClock: return add_to_cell(e, gs_clock(app), op.value, flags_free, scratch);
    case Op::Set: return e.movabs(temp, uint64_t(op.value));
    case Op::GetRegister:
      for (int n = 0; n < 2; n++)
        if (places.spilled[n] && places.reg[n] == op.reg) return e.mov(temp, thread(gs_spill(n)));
      return e.mov(temp, op.reg);
    case Op::LoadCounter: return e.mov(temp, thread(gs_counter(op.counter)));
    case Op::StoreCounter: return e.mov(thread(gs_counter(op.counter)), temp);
    case Op::Load: CHECK(fits(op.value)); return e.mov(temp, at_wide(other, int32_t(op.value)));
    case Op::Store: CHECK(fits(op.value)); return e.mov(at_wide(other, int32_t(op.value)), temp);
    case Op::Add:
      if (fits(op.value)) return e.lea(temp, at(temp, int32_t(op.value)));
      e.movabs(scratch[0], uint64_t(op.value));
      return e.lea(temp, sum(temp, scratch[0]));
    default: break;
  }
}

// Jumps over operations, which are not emitted yet.
class Skips {
 public:
  Skips(Emitter& e, const Memory& slot) : e_(e), slot_(slot) {}  // (a slot for rcx)

  // Unless temp == value: on to operation `to`. No flags: rcx tells. lea rcx, [temp - value]; jrcxz go on; jmp over
  void skip_unless(Gpr temp, int64_t value, size_t to, bool is_short) {
    int64_t difference = negated(value);
    e_.mov(slot_, x86::RCX);
    if (fits(difference)) {
      e_.lea(x86::RCX, at(temp, int32_t(difference)));
    } else {
      e_.movabs(x86::RCX, uint64_t(difference));
      e_.lea(x86::RCX, sum(x86::RCX, temp));
    }
    uint32_t goes_on = e_.jrcxz();
    e_.mov(x86::RCX, slot_);
    skips_.push_back({is_short ? e_.jmp_short() : e_.jmp(), to, is_short});
    e_.comes_here_short(goes_on);
    e_.mov(x86::RCX, slot_);
  }
  // Operation `to` begins here.
  void arrive(size_t to) {
    for (const Skip& s : skips_) {
      if (s.to != to) continue;
      if (s.is_short) e_.comes_here_short(s.displacement);
      else e_.comes_here(s.displacement);
    }
  }

 private:
  struct Skip {
    uint32_t displacement;
    size_t to;
    bool is_short;
  };
  Emitter& e_;
  const Memory slot_;
  std::vector<Skip> skips_;
};

}  // namespace

// Through the table control comes with rcx in its slot. If it is live it is taken back: behind the probes, if they can use it until then.
void Lowering::arrive(x86::BlockId to, AppPc address) {
  bool wants_rcx = has_table_ && is_live(to, x86::RCX);
  bool late = wants_rcx && !arrivals_.empty() && std::ranges::all_of(arrivals_, [&](const Insertion* i) {
                return std::ranges::all_of(in_.plan.ops_of(*i), [this](const Op& op) { return ends_a_call(op); });
              });
  if (wants_rcx && !late) {
    mark(Mark::Exact, address, rt::RestoreRcx, e_.offset() + restore_size);
    e_.mov(x86::RCX, thread(gs_rcx));
  }
  for (const Insertion* i : arrivals_) probe(in_.plan.ops_of(*i), live_.live_in[to], address, late);
  if (late) {
    e_.mov(x86::RCX, thread(gs_rcx));
    mark(Mark::Run, address);
  }
  arrivals_.clear();
}

void Lowering::call_with_temps(const Op& op, Gpr a, Gpr b, bool flags_free) {
  set_argument(0, a);
  set_argument(1, b);
  go_through(flags_free ? Door::Probe : Door::Routine, static_cast<uint32_t>(op.value));
}

void Lowering::probe(std::span<const Op> ops, x86::RegSet live, AppPc app, bool rcx_in_slot) {
  if (std::ranges::any_of(ops, is_general)) return operate(ops, live, app);
  rcx_in_slot_ = rcx_in_slot;
  if (rcx_in_slot) live.gpr &= static_cast<uint16_t>(~(1 << x86::RCX));
  bool flags_free = !(live.flags & arithmetic_flags);
  Places places;
  bool needs_scratch = false, keep_rcx = false;
  for (const Op& op : ops) {
    for (int n = 0; n < 2; n++) places.used[n] |= uses_temp(op, n, inline_code_, register_clock_);
    needs_scratch |= scratch_count(op, flags_free, register_clock_) > 0;
    keep_rcx |= op.kind == Op::SkipUnless && !fits(negated(op.value));
  }
  bool lends = needs_scratch && !places.used[0];  // the place of A, which no operation uses, serves them all
  places.used[0] |= lends;
  uint16_t wanted = registers_read(ops) & not_rsp;
  Pool pool{uint16_t(~live.gpr & not_rsp & ~wanted), uint16_t(not_rsp & ~wanted), wanted};
  if (keep_rcx) pool.exclude(x86::RCX);
  bool has_frames = std::any_of(ops.begin(), ops.end(), [](const Op& op) { return op.kind >= Op::PushFrame; });
  if (has_frames) pool.exclude(x86::RAX);  // see frame.cc
  uint32_t begin = e_.offset();
  mark(rcx_in_slot ? Mark::Middle : Mark::Exact, app, 0, begin);
  uint8_t restore = 0, numbers = 0;
  for (int n = 0; n < 2; n++) {
    if (!places.used[n]) continue;
    places.reg[n] = pool.take(places.spilled[n]);
    if (!places.spilled[n]) continue;
    e_.mov(thread(gs_spill(n)), places.reg[n]);
    restore |= n ? rt::RestoreSpill1 : rt::RestoreSpill0;
    numbers |= uint8_t(places.reg[n] << 4 * n);
  }
  if (restore) mark(Mark::Middle, app, restore, begin, numbers);
  Skips skips(e_, thread(gs_spill(2)));
  for (size_t k = 0; k < ops.size(); k++) {
    skips.arrive(k);
    const Op& op = ops[k];
    if (op.kind == Op::SkipUnless) {
      size_t to = std::min(k + 1 + op.count, ops.size());
      skips.skip_unless(places.reg[static_cast<int>(op.temp)], op.value, to,
                        to - k <= 2);  // one operation is less than 127 bytes
      continue;
    }
    if (op.kind == Op::GoTo) {
      for (int n = 0; n < 2; n++)
        if (places.spilled[n]) e_.mov(places.reg[n], thread(gs_spill(n)));
      placement_.go_to(*this, app, static_cast<Version>(op.value));
      continue;
    }
    if (op.kind >= Op::PushFrame) {
      frame_op(op, places.reg[0], places.reg[1], flags_free);
      continue;
    }
    if (op.kind == Op::AddClock && register_clock_) {
      advance_clock(op.value);
      continue;
    }
    if (op.kind == Op::Call) {
      call_with_temps(op, places.reg[0], places.reg[1], flags_free);
      continue;
    }
    Gpr scratch[2] = {places.reg[0], places.reg[0]};
    bool spilled[2] = {false, false};
    Pool rest = pool;
    for (int n = lends ? 1 : 0; n < scratch_count(op, flags_free, register_clock_); n++) {
      scratch[n] = rest.take(spilled[n]);
      if (spilled[n]) e_.mov(thread(gs_spill(2 + n)), scratch[n]);
    }
    emit_op(e_, op, places, scratch, flags_free, app);
    for (int n = 0; n < 2; n++)
      if (spilled[n]) e_.mov(scratch[n], thread(gs_spill(2 + n)));
  }
  skips.arrive(ops.size());
  for (int n = 0; n < 2; n++)
    if (places.spilled[n]) e_.mov(places.reg[n], thread(gs_spill(n)));
  rcx_in_slot_ = false;
  if (!rcx_in_slot) mark(Mark::Run, app);
}

}  // namespace weir::instrument
