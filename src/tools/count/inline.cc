// With t and u two registers, and `frame` the one on top when it is popped:
//     if (--counters[callee] == 0) record.total += clock - frame.clock        a call inside a call of the same function counts once
//     self = self_clock - frame.self_clock;  is it in record.spread?  self_clock = frame.self_clock

#include "tools/count/inline.h"

#include "instrument/lowering.h"
#include "tools/count/runtime/memory.h"

namespace weir::count {

using instrument::at;
using instrument::at_wide;
using instrument::clock_register;
using instrument::Counter;
using instrument::Emitter;
using instrument::gs_counter;
using instrument::indexed;
using instrument::Lowering;
using instrument::Op;
using instrument::sum;
using instrument::Tail;
using instrument::thread;
using x86::Gpr;
using Door = Lowering::Door;

namespace {

constexpr int8_t size = sizeof(runtime::Frame);
constexpr int8_t callee_at = offsetof(rt::Frame, callee), clock_at = sizeof(rt::Frame), self_at = clock_at + 8;
static_assert(sizeof(rt::Frame) == 16 && size % 16 == 0);
constexpr uint32_t gs_leaf = offsetof(rt::ThreadBlock, tool), gs_leaf_self = gs_leaf + 8,
                   gs_leaf_site = gs_leaf + offsetof(runtime::LeafCall, site),
                   gs_self_bias = offsetof(rt::ThreadBlock, clock) + offsetof(rt::ClockState, self_bias);
static_assert(offsetof(runtime::LeafCall, begin) == 0 && offsetof(rt::Times, self) == 8);
static_assert(rt::clock_cells == 2);

uint32_t gs_cell(Counter c, uint32_t n = 0) { return gs_counter({c.index + n}); }

enum ColdPart : uint32_t {
  OtherCallee,
  Extreme
};  // argument: the site; where the spread is. OtherCallee's second: the caller

class Inline : public instrument::InlineCode {
 public:
  uint32_t frame_size() const override { return size; }
  void begin_frame(Lowering& code, Gpr t, Gpr u) const override;
  bool can_begin_frame_at(bool has_register_clock) const override { return has_register_clock; }
  void begin_frame_at(Lowering& code, Gpr t) const override { code.emitter().vmovdqu64(at(t, clock_at), clock_register); }
  void end_frame(Lowering& code, const Op& op, Gpr t, Gpr u) const override;
  bool compare_settled(Lowering& code) const override;
  Needs needs(const Op& op, bool has_register_clock) const override;
  void own(Lowering& code, const Op& op, Gpr t, Gpr u) const override;
  void cold(Lowering& code, const Tail& tail) const override;
};

// u = the clock, without flags; t is lost.
void sum_clock(Lowering& code, Gpr t, Gpr u) {
  Emitter& e = code.emitter();
  e.mov(u, thread(gs_counter({0})));
  e.mov(t, thread(gs_counter({1})));
  e.lea(u, sum(u, t));
}
// … and from that the self clock.
void add_bias(Lowering& code, Gpr t, Gpr u) {
  Emitter& e = code.emitter();
  e.mov(t, thread(gs_self_bias));
  e.lea(u, sum(u, t));
}

// The frame below t ends, and with it what the self clock said in it; u = its own time.
void take_off(Lowering& code, Gpr t, Gpr u) {
  Emitter& e = code.emitter();
  if (code.has_register_clock()) {
    e.vpextrq(u, clock_register, 1);
    e.sub(u, at(t, self_at - size));
    e.vmovhps(clock_register, clock_register, at(t, self_at - size));
  } else {
    code.read_clock(u);
    e.add(u, thread(gs_self_bias));
    e.sub(u, at(t, self_at - size));
    e.sub(thread(gs_self_bias), u);
  }
  code.take_off(t);
}

// What passed since the frame below t was pushed goes to the record; u is lost.
void add_total(Lowering& code, const Op& op, Gpr t, Gpr u) {
  code.read_clock(u);
  code.emitter().sub(u, at(t, clock_at - size));
  code.emitter().add(thread(gs_cell(op.counter, runtime::RecordTotal)), u);
}

// The record's spread of self times has u in it, or the runtime widens it. u is lost.
void note_self(Lowering& code, const Op& op, Gpr u) {
  Emitter& e = code.emitter();
  uint32_t spread = gs_cell(op.counter, runtime::RecordSpread);
  e.sub(u, thread(spread));
  e.cmp(u, thread(spread + 8));
  e.jcc(Emitter::AboveOrEqual);
  code.leads_to_cold(Extreme, spread, u, u);
}

void begin_leaf(Lowering& code, const Op& op, Gpr t, Gpr u) {
  Emitter& e = code.emitter();
  e.mov32(thread(gs_leaf_site), op.counter.index);
  if (code.has_register_clock()) return e.vmovdqu64(thread(gs_leaf), clock_register);
  sum_clock(code, t, u);
  e.mov(thread(gs_leaf), u);
  add_bias(code, t, u);
  e.mov(thread(gs_leaf_self), u);
}

// A function that calls nobody has only time of its own. (What handlers took meanwhile they have added when they ended.) Without a call
// under way control came by a jump: the table knows one place for an address, whoever leads there.
void end_leaf(Lowering& code, const Op& op, Gpr u) {
  Emitter& e = code.emitter();
  e.cmp32_short(thread(gs_leaf_site), 0);
  e.skip_if(Emitter::Equal, [&] {
    if (code.has_register_clock()) {
      e.vpextrq(u, clock_register, 1);
      e.sub(u, thread(gs_leaf_self));
      e.vmovhps(clock_register, clock_register, thread(gs_leaf_self));
    } else {
      code.read_clock(u);
      e.add(u, thread(gs_self_bias));
      e.sub(u, thread(gs_leaf_self));
      e.sub(thread(gs_self_bias), u);
    }
    e.add(thread(gs_cell(op.counter, runtime::RecordTotal)), u);
    e.mov32(thread(gs_leaf_site), 0);
    note_self(code, op, u);
  });
}

// Out of line: the record is where site and callee hash to. u is the callee.
void end_other_callee(Lowering& code, const Tail& tail) {
  using runtime::OtherRecord;
  Emitter& e = code.emitter();
  Gpr t = tail.t, u = tail.u;
  uint32_t slow[2];
  auto record = [](size_t field) { return at_wide(x86::RAX, static_cast<int32_t>(runtime::others_offset + field)); };
  code.keep_rax(tail);
  e.imul32(x86::RAX, u, runtime::others_hash_callee);
  e.add_eax(tail.argument * runtime::others_hash_site);
  e.shr32(x86::RAX, 32 - runtime::near_others_bits);
  static_assert(sizeof(OtherRecord) == 48);
  e.lea(x86::RAX, indexed(x86::RAX, x86::RAX, 2));
  e.shl(x86::RAX, 4);
  e.cmp32(thread(record(offsetof(OtherRecord, callee))), u);
  slow[0] = e.jcc(Emitter::NotEqual);
  e.cmp32(thread(record(offsetof(OtherRecord, site))), tail.argument);
  slow[1] = e.jcc(Emitter::NotEqual);
  e.inc(thread(record(offsetof(OtherRecord, calls))));
  code.leave_function(u);
  e.skip_if(Emitter::NotEqual, [&] {
    code.read_clock(u);
    e.sub(u, at(t, clock_at - size));
    e.add(thread(record(offsetof(OtherRecord, total))), u);
  });
  take_off(code, t, u);
  e.sub(u, thread(record(offsetof(OtherRecord, self.min))));
  e.cmp(u, thread(record(offsetof(OtherRecord, self.span))));
  uint32_t extreme = e.jcc(Emitter::AboveOrEqual);
  code.take_rax_back(tail);
  code.jump_back(tail);
  e.comes_here(extreme);
  code.set_argument(0, u);
  e.lea(x86::RAX, record(offsetof(OtherRecord, self)));
  code.set_argument(1, x86::RAX);
  code.take_rax_back(tail);
  code.go_through(Door::Light, runtime::Extreme);
  code.jump_back(tail);
  for (uint32_t from : slow) e.comes_here(from);
  code.take_rax_back(tail);
  code.call_routine(Door::Light, rt::StackLeave, tail.second, 0);
  code.jump_back(tail);
}

void Inline::begin_frame(Lowering& code, Gpr t, Gpr u) const {
  Emitter& e = code.emitter();
  if (code.has_register_clock()) {
    code.load_top(t);
    return e.vmovdqu64(at(t, clock_at), clock_register);
  }
  sum_clock(code, t, u);
  code.load_top(t);
  e.mov(at(t, clock_at), u);
  add_bias(code, t, u);
  code.load_top(t);
  e.mov(at(t, self_at), u);
}

void Inline::end_frame(Lowering& code, const Op& op, Gpr t, Gpr u) const {
  Emitter& e = code.emitter();
  if (op.callee.index) {
    code.leave_function(op.callee);
    e.skip_if(Emitter::NotEqual, [&] { add_total(code, op, t, u); });
    take_off(code, t, u);
    return note_self(code, op, u);
  }
  e.mov32(u, at(t, callee_at - size));
  e.cmp32(u, thread(gs_cell(op.counter, runtime::RecordCallee)));
  e.jcc(Emitter::NotEqual);
  size_t other = code.leads_to_cold(OtherCallee, op.counter.index, t, u, static_cast<uint32_t>(op.value));
  e.inc(thread(gs_cell(op.counter, runtime::RecordCalls)));
  code.leave_function(u);
  e.skip_if(Emitter::NotEqual, [&] { add_total(code, op, t, u); });
  take_off(code, t, u);
  note_self(code, op, u);
  code.ends_cold(other);
}

// A leaf call may be under way.
bool Inline::compare_settled(Lowering& code) const {
  code.emitter().cmp32_short(thread(gs_leaf_site), 0);
  return true;
}

instrument::InlineCode::Needs Inline::needs(const Op& op, bool has_register_clock) const {
  if (op.value == EndLeaf) return {.a = true, .b = false, .flags = true};
  return {.a = !has_register_clock, .b = !has_register_clock, .flags = false};
}

void Inline::own(Lowering& code, const Op& op, Gpr t, Gpr u) const {
  if (op.value == EndLeaf) end_leaf(code, op, t);
  else begin_leaf(code, op, t, u);
}

void Inline::cold(Lowering& code, const Tail& tail) const {
  if (tail.number == OtherCallee) return end_other_callee(code, tail);
  code.set_argument(0, tail.u);
  code.set_argument(1, tail.argument);
  code.go_through(Door::Light, runtime::Extreme);
  code.jump_back(tail);
}

}  // namespace

const instrument::InlineCode& inline_code() {
  static const Inline code;
  return code;
}

}  // namespace weir::count
