// With t and u two registers, and `frame` the one on top when it is popped:
//     if (--counters[callee] == 0) record.total += clock - frame.clock        a call inside a call of the same function counts once
//     self = self_clock - frame.self_clock;  is it in record.spread?  self_clock = frame.self_clock

#include "tools/count/inline.h"

#include "instrument/lowering.h"
#include "tools/count/runtime/memory.h"

namespace weir::count {

using instrument::Counter;
using instrument::Emitter;
using instrument::gs_counter;
using instrument::Lowering;
using instrument::Op;
using instrument::Tail;
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
  void begin_frame_at(Lowering& code, Gpr t) const override { code.emitter().store_clock(t, clock_at); }
  void end_frame(Lowering& code, const Op& op, Gpr t, Gpr u) const override;
  bool compare_settled(Lowering& code) const override;
  Needs needs(const Op& op, bool has_register_clock) const override;
  void own(Lowering& code, const Op& op, Gpr t, Gpr u) const override;
  void cold(Lowering& code, const Tail& tail) const override;
};

// u = the clock, without flags; t is lost.
void sum_clock(Emitter& e, Gpr t, Gpr u) {
  e.load_gs(u, gs_counter({0}));
  e.load_gs(t, gs_counter({1}));
  e.lea_sum(u, u, t);
}
// … and from that the self clock.
void add_bias(Emitter& e, Gpr t, Gpr u) {
  e.load_gs(t, gs_self_bias);
  e.lea_sum(u, u, t);
}

// The frame below t ends, and with it what the self clock said in it; u = its own time.
void take_off(Lowering& code, Gpr t, Gpr u) {
  Emitter& e = code.emitter();
  if (code.has_register_clock()) {
    e.move_self_clock(u);
    e.op(0x2b, u, t, self_at - size);
    e.load_self_clock(t, self_at - size);
  } else {
    code.read_clock(u);
    e.op_gs(0x03, u, gs_self_bias);
    e.op(0x2b, u, t, self_at - size);
    e.op_gs(0x29, u, gs_self_bias);
  }
  code.take_off(t);
}

// What passed since the frame below t was pushed goes to the record; u is lost.
void add_total(Lowering& code, const Op& op, Gpr t, Gpr u) {
  code.read_clock(u);
  code.emitter().op(0x2b, u, t, clock_at - size);
  code.emitter().op_gs(0x01, u, gs_cell(op.counter, runtime::RecordTotal));
}

// The record's spread of self times has u in it, or the runtime widens it. u is lost.
void note_self(Lowering& code, const Op& op, Gpr u) {
  Emitter& e = code.emitter();
  uint32_t spread = gs_cell(op.counter, runtime::RecordSpread);
  e.op_gs(0x2b, u, spread);
  e.op_gs(0x3b, u, spread + 8);
  e.jump_if(Emitter::AboveOrEqual);
  code.leads_to_cold(Extreme, spread, u, u);
}

void begin_leaf(Lowering& code, const Op& op, Gpr t, Gpr u) {
  Emitter& e = code.emitter();
  e.store_gs_imm(gs_leaf_site, op.counter.index);
  if (code.has_register_clock()) return e.store_clock_gs(gs_leaf);
  sum_clock(e, t, u);
  e.store_gs(u, gs_leaf);
  add_bias(e, t, u);
  e.store_gs(u, gs_leaf_self);
}

// A function that calls nobody has only time of its own. (What handlers took meanwhile they have added when they ended.) Without a call
// under way control came by a jump: the table knows one place for an address, whoever leads there.
void end_leaf(Lowering& code, const Op& op, Gpr u) {
  Emitter& e = code.emitter();
  e.compare_gs_0(gs_leaf_site);
  e.skip_if(Emitter::Equal, [&] {
    if (code.has_register_clock()) {
      e.move_self_clock(u);
      e.op_gs(0x2b, u, gs_leaf_self);
      e.load_self_clock_gs(gs_leaf_self);
    } else {
      code.read_clock(u);
      e.op_gs(0x03, u, gs_self_bias);
      e.op_gs(0x2b, u, gs_leaf_self);
      e.op_gs(0x29, u, gs_self_bias);
    }
    e.op_gs(0x01, u, gs_cell(op.counter, runtime::RecordTotal));
    e.store_gs_imm(gs_leaf_site, 0);
    note_self(code, op, u);
  });
}

// Out of line: the record is where site and callee hash to. u is the callee.
void end_other_callee(Lowering& code, const Tail& tail) {
  using runtime::OtherRecord;
  Emitter& e = code.emitter();
  Gpr t = tail.t, u = tail.u;
  uint32_t slow[2];
  auto record = [](size_t field) { return static_cast<uint32_t>(runtime::others_offset + field); };
  code.keep_rax(tail);
  if (u >> 3) e.bytes(0x41);
  e.bytes(0x69, 0xc0 | (u & 7));  // imul eax, u, …
  e.u32(runtime::others_hash_callee);
  e.bytes(0x05);  // add eax, …
  e.u32(tail.argument * runtime::others_hash_site);
  e.bytes(0xc1, 0xe8, 32 - runtime::near_others_bits);  // shr eax, …
  static_assert(sizeof(OtherRecord) == 48);
  e.bytes(0x48, 0x8d, 0x04, 0x40, 0x48, 0xc1, 0xe0, 4);  // lea rax, [rax + rax*2]; shl rax, 4
  e.op_gs_rax(0x39, u, record(offsetof(OtherRecord, callee)), false);
  slow[0] = e.jump_if(Emitter::NotEqual);
  e.compare_gs_rax_imm(record(offsetof(OtherRecord, site)), tail.argument);
  slow[1] = e.jump_if(Emitter::NotEqual);
  e.inc_gs_rax(record(offsetof(OtherRecord, calls)));
  code.leave_function(u);
  e.skip_if(Emitter::NotEqual, [&] {
    code.read_clock(u);
    e.op(0x2b, u, t, clock_at - size);
    e.op_gs_rax(0x01, u, record(offsetof(OtherRecord, total)));
  });
  take_off(code, t, u);
  e.op_gs_rax(0x2b, u, record(offsetof(OtherRecord, self.min)));
  e.op_gs_rax(0x3b, u, record(offsetof(OtherRecord, self.span)));
  uint32_t extreme = e.jump_if(Emitter::AboveOrEqual);
  code.take_rax_back(tail);
  code.jump_back(tail);
  e.comes_here(extreme);
  code.set_argument(0, u);
  e.bytes(0x48, 0x8d, 0x80);  // lea rax, [rax + …]
  e.u32(record(offsetof(OtherRecord, self)));
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
    return e.store_clock(t, clock_at);
  }
  sum_clock(e, t, u);
  code.load_top(t);
  e.op(0x89, u, t, clock_at);
  add_bias(e, t, u);
  code.load_top(t);
  e.op(0x89, u, t, self_at);
}

void Inline::end_frame(Lowering& code, const Op& op, Gpr t, Gpr u) const {
  Emitter& e = code.emitter();
  if (op.callee.index) {
    code.leave_function(op.callee);
    e.skip_if(Emitter::NotEqual, [&] { add_total(code, op, t, u); });
    take_off(code, t, u);
    return note_self(code, op, u);
  }
  e.op32(0x8b, u, t, callee_at - size);
  e.compare_gs32(u, gs_cell(op.counter, runtime::RecordCallee));
  e.jump_if(Emitter::NotEqual);
  size_t other = code.leads_to_cold(OtherCallee, op.counter.index, t, u, static_cast<uint32_t>(op.value));
  e.add_gs(gs_cell(op.counter, runtime::RecordCalls), 1);
  code.leave_function(u);
  e.skip_if(Emitter::NotEqual, [&] { add_total(code, op, t, u); });
  take_off(code, t, u);
  note_self(code, op, u);
  code.ends_cold(other);
}

// A leaf call may be under way.
bool Inline::compare_settled(Lowering& code) const {
  code.emitter().compare_gs_0(gs_leaf_site);
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
