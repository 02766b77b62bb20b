// The parallel stack (rt/frames.h), inline. Calls push without writing flags, which may be live there; where returns and arrivals must keep
// them, they go through ah and al (lahf, seto).
//
// With t and u two registers, t the top of the stack:
//     push:  [t] = site, callee, rsp, and what the tool keeps (InlineCode); top += size; ++counters[callee]
//     pop:   is [t - size].rsp the stack pointer? The tool takes the frame off.
// What does not fit goes to the runtime (rt/parallel_stack.h).

#include "instrument/lowering.h"

namespace weir::instrument {

using x86::Gpr;

namespace {

constexpr uint32_t gs_top = offsetof(rt::ThreadBlock, frames) + offsetof(rt::FrameState, top),
                   gs_jump_site = offsetof(rt::ThreadBlock, frames) + offsetof(rt::FrameState, jump_site),
                   gs_jump_caller = offsetof(rt::ThreadBlock, frames) + offsetof(rt::FrameState, jump_caller);
constexpr int8_t site_at = offsetof(rt::Frame, site), callee_at = offsetof(rt::Frame, callee),
                 rsp_at = offsetof(rt::Frame, rsp);

constexpr uint32_t gs_awaited = offsetof(rt::ThreadBlock, awaited);
constexpr uint32_t gs_argument(uint32_t n) { return offsetof(rt::ThreadBlock, routine_args) + 8 * n; }

// What a frame holds of a call.
uint32_t site_of(const Op& op) { return op.counter.index | (op.callee.index ? rt::direct_site : 0); }
uint32_t callee_of(const Op& op) { return op.callee.index ? op.callee.index : rt::not_arrived; }

}  // namespace

void InlineCode::begin_frame(Lowering& code, Gpr t, Gpr) const { code.load_top(t); }

void InlineCode::end_frame(Lowering& code, const Op& op, Gpr t, Gpr u) const {
  if (op.callee.index) {
    code.leave_function(op.callee);
  } else {
    code.emitter().mov32(u, at(t, callee_at - static_cast<int>(frame_size())));
    code.leave_function(u);
  }
  code.take_off(t);
}

// ---- For the tool's inline code ----

void Lowering::load_top(Gpr t) { e_.mov(t, thread(gs_top)); }
void Lowering::leave_function(Counter callee) { e_.dec(thread(gs_counter(callee))); }
void Lowering::leave_function(Gpr callee) { e_.dec(thread(scaled(callee, 8, rt::counters_offset))); }
void Lowering::take_off(Gpr t) {
  e_.lea(t, at(t, -frame_size()));
  e_.mov(thread(gs_top), t);
}

// The runtime does it. Registers are kept, and flags where they must. (Of a return one argument is enough.)
void Lowering::call_routine(Door door, uint32_t routine, uint32_t a, uint32_t b) {
  set_argument(0, a);
  if (routine != rt::StackLeave) set_argument(1, b);
  go_through(door, routine);
}
void Lowering::set_argument(uint32_t n, uint32_t value) { e_.mov(thread(gs_argument(n)), static_cast<int32_t>(value)); }
void Lowering::set_argument(uint32_t n, Gpr value) { e_.mov(thread(gs_argument(n)), value); }

void Lowering::go_through(Door door, uint32_t routine) {
  CHECK(door != Door::Light || routine < rt::light_routines);
  if (door != Door::Light) e_.mov32(thread(offsetof(rt::ThreadBlock, exit_id)), routine);
  if (!rcx_in_slot_) e_.mov(thread(gs_rcx), x86::RCX);
  uint32_t behind = e_.lea_ahead(x86::RCX);
  placement_.enter(*this, door == Door::Light   ? offsetof(rt::ThreadBlock, enter_light) + routine * 8
                          : door == Door::Probe ? offsetof(rt::ThreadBlock, enter_probe)
                                                : offsetof(rt::ThreadBlock, enter_routine));
  e_.comes_here(behind);
  if (!rcx_in_slot_) e_.mov(x86::RCX, thread(gs_rcx));
}

size_t Lowering::leads_to_cold(uint32_t number, uint32_t argument, Gpr t, Gpr u, uint32_t second) {
  add_frame_tail(Tail::Own, e_.offset() - 4, argument, e_.offset(), t, u);
  tails_.back().number = number;
  tails_.back().second = second;
  return tails_.size() - 1;
}

void Lowering::keep_rax(const Tail& cold) {
  if (!cold.rax_in_slot) e_.mov(thread(gs_spill(2)), x86::RAX);
}
void Lowering::take_rax_back(const Tail& cold) {
  if (!cold.rax_in_slot) e_.mov(x86::RAX, thread(gs_spill(2)));
}

// ---- The operations ----

// ZF: the frames below t are several tail calls that end together, at rsp + `end`. Those are the runtime's: it ends long chains.
void Lowering::compare_chain(Gpr t, Gpr u, int32_t end) {
  constexpr int several = 3;
  e_.lea(u, at(x86::RSP, end | static_cast<int32_t>(rt::FrameIsTail)));
  e_.xor_(u, at(t, rsp_at - several * frame_size()));
  e_.and_(u, ~int8_t{rt::FrameIsMarked | rt::FrameIsCounted});
}

void Lowering::push_frame(const Op& op, Gpr t, Gpr u) {
  inline_code_->begin_frame(*this, t, u);
  e_.mov32(at(t, site_at), site_of(op));
  e_.mov32(at(t, callee_at), callee_of(op));
  if (op.value) e_.lea(u, at(x86::RSP, static_cast<int32_t>(op.value)));
  e_.mov(at(t, rsp_at), op.value ? u : x86::RSP);
  e_.lea(t, at(t, frame_size()));
  e_.mov(thread(gs_top), t);
  if (!op.callee.index) return;
  if (op.flags_are_dead) return e_.inc(thread(gs_counter(op.callee)));
  e_.mov(t, thread(gs_counter(op.callee)));
  e_.lea(t, at(t, 1));
  e_.mov(thread(gs_counter(op.callee)), t);
}

// Out of line: whoever comes was not called, but jumped to. If it is on the stack of the frame on top, it takes that one's place.
void Lowering::arrive_by_tail_call(const Tail& tail) {
  constexpr int32_t end = 8;  // the frame ends there, above rsp
  Gpr t = tail.t, u = x86::RAX;
  Counter callee{tail.argument};
  uint32_t slow[3];
  keep_rax(tail);
  e_.lea(u, at(x86::RSP, end));
  e_.xor_(u, at(t, rsp_at - frame_size()));
  e_.and_(u, ~int8_t{rt::FrameIsTail});
  slow[0] = e_.jcc(Emitter::NotEqual);
  compare_chain(t, u, end);
  slow[1] = e_.jcc(Emitter::Equal);
  e_.mov32(x86::RAX, thread(gs_jump_caller));
  e_.cmp32(u, at(t, callee_at - frame_size()));
  slow[2] = e_.jcc(Emitter::NotEqual);
  inline_code_->begin_frame_at(*this, t);
  e_.mov32(x86::RAX, thread(gs_jump_site));
  e_.mov32(at(t, site_at), u);
  e_.mov32(at(t, callee_at), callee.index);
  e_.lea(u, at(x86::RSP, end | rt::FrameIsTail));
  e_.mov(at(t, rsp_at), u);
  e_.lea(t, at(t, frame_size()));
  e_.mov(thread(gs_top), t);
  e_.inc(thread(gs_counter(callee)));
  take_rax_back(tail);
  jump_back(tail);
  for (uint32_t from : slow) e_.comes_here(from);
  take_rax_back(tail);
  call_routine(Door::Light, rt::StackTailArrival, callee.index, 0);
  jump_back(tail);
}

// A call of a named function begins. The runtime comes back to behind the jump, or, if the tool has done it all, to that: it is a return.
void Lowering::begin_call(const Op& op) {
  set_argument(0, static_cast<uint32_t>(op.value));
  set_argument(1, op.counter.index);
  e_.mov32(thread(offsetof(rt::ThreadBlock, exit_id)), rt::CallBegins);
  if (!rcx_in_slot_) e_.mov(thread(gs_rcx), x86::RCX);
  uint32_t behind = e_.lea_ahead(x86::RCX);
  placement_.enter(*this, offsetof(rt::ThreadBlock, enter_routine));
  uint32_t replaced = e_.offset();
  tails_.push_back({Tail::Return, e_.jmp()});
  CHECK(e_.offset() - replaced == rt::replaced_entry);
  e_.comes_here(behind);
  if (!rcx_in_slot_) e_.mov(x86::RCX, thread(gs_rcx));
}

// What a probe leaves for the end of the function: it finds registers as they are here.
void Lowering::add_frame_tail(Tail::Kind kind, uint32_t from, uint32_t argument, uint32_t back, Gpr t, Gpr u) {
  Tail tail{kind, from};
  tail.argument = argument, tail.back = back;
  tail.t = t, tail.u = u;
  tail.rcx_in_slot = rcx_in_slot_, tail.rax_in_slot = rax_in_slot_;
  tails_.push_back(tail);
}

void Lowering::emit_frame_tail(const Tail& tail) {
  rcx_in_slot_ = tail.rcx_in_slot;
  if (tail.kind == Tail::Own) {
    inline_code_->cold(*this, tail);
  } else if (tail.kind == Tail::Arrival && inline_code_->can_begin_frame_at(register_clock_)) {
    arrive_by_tail_call(tail);
  } else if (tail.number > rt::add_to_counter) {  // the tool may look at the program's registers, and change a result
    if (tail.rax_in_slot) e_.mov(x86::RAX, thread(gs_spill(2)));
    call_routine(Door::Routine, tail.number, tail.argument, tail.second);
    if (tail.rax_in_slot) e_.mov(thread(gs_spill(2)), x86::RAX);
    jump_back(tail);
  } else {
    call_routine(tail.number == rt::StackResync ? Door::Probe : Door::Light, tail.number, tail.argument, tail.second);
    jump_back(tail);
  }
  rcx_in_slot_ = false;
}

// Does it only note that control has come back, or come?
bool Lowering::ends_a_call(const Op& op) const {
  return op.kind == Op::PopFrame || op.kind == Op::ArriveFrame || op.kind == Op::ResyncFrames || op.kind == Op::EndCalls ||
         (op.kind == Op::Own && keeps_flags(op));
}

// Does the operation write flags in some way that its probe must hide?
bool Lowering::keeps_flags(const Op& op) const {
  switch (op.kind) {
    case Op::PopFrame:
    case Op::ArriveFrame:
    case Op::EndCalls:
    case Op::TellStack:
    case Op::ResyncFrames: return true;
    case Op::PushFrame: return op.goes_back && !op.flags_are_dead;
    case Op::CallWith: return op.value < rt::light_routines;
    case Op::Own: return inline_code_->needs(op, register_clock_).flags;
    default: return false;
  }
}

void Lowering::frame_op(const Op& op, Gpr t, Gpr u, bool flags_free) {
  std::vector<uint32_t> slow;  // displacements that lead to the runtime
  auto slow_if = [&](Emitter::Condition condition) { slow.push_back(e_.jcc(condition)); };
  uint32_t routine = rt::StackLeave, argument = 0, second = 0;
  Tail::Kind kind = Tail::Routine;
  bool keeps = !flags_free && keeps_flags(op);
  rax_in_slot_ = keeps;
  if (keeps) {
    e_.mov(thread(gs_spill(2)), x86::RAX);
    e_.lahf();
    e_.seto_al();
    e_.mov(thread(gs_spill(3)), x86::RAX);
  }
  switch (op.kind) {
    case Op::PushFrame:
      if (!op.goes_back) return push_frame(op, t, u);
      routine = rt::StackEnterTail;
      argument = site_of(op), second = callee_of(op);
      load_top(t);
      compare_chain(t, u, static_cast<int32_t>(op.value));
      slow_if(Emitter::Equal);
      push_frame(op, t, u);
      break;
    case Op::PopFrame:
      load_top(t);
      e_.cmp(at(t, rsp_at - frame_size()), x86::RSP);
      slow_if(Emitter::NotEqual);
      argument = static_cast<uint32_t>(op.value);
      inline_code_->end_frame(*this, op, t, u);
      break;
    case Op::ArriveFrame:
      kind = Tail::Arrival, routine = rt::StackTailArrival;
      argument = op.callee.index;
      load_top(t);
      e_.cmp32(at(t, callee_at - frame_size()), rt::not_arrived);
      slow_if(Emitter::NotEqual);
      e_.mov32(at(t, callee_at - frame_size()), argument);
      e_.inc(thread(gs_counter(op.callee)));
      break;
    case Op::ResyncFrames:
      routine = rt::StackResync;
      argument = op.callee.index;
      load_top(t);
      e_.lea(u, at(x86::RSP, rt::frame_bits));  // (the lowest bits of Frame::rsp say something else)
      e_.cmp(at(t, rsp_at - frame_size()), u);
      slow_if(Emitter::BelowOrEqual);
      e_.cmp32(at(t, callee_at - frame_size()), op.callee.index);
      slow_if(Emitter::NotEqual);
      if (inline_code_->compare_settled(*this)) slow_if(Emitter::NotEqual);
      break;
    case Op::CallWith:
      call_routine(op.value < rt::light_routines ? Door::Light
                   : flags_free                  ? Door::Probe
                                                 : Door::Routine,
                   static_cast<uint32_t>(op.value), op.counter.index, op.callee.index);
      break;
    case Op::SetJumpSite:
      e_.mov32(thread(gs_jump_site), op.counter.index);
      return e_.mov32(thread(gs_jump_caller), op.callee.index);
    case Op::Own: inline_code_->own(*this, op, t, u); break;
    case Op::BeginCall: return begin_call(op);
    case Op::EndCalls:
      routine = rt::CallsReturn;
      argument = static_cast<uint32_t>(op.value), second = static_cast<uint32_t>(op.value >> 32);
      e_.cmp(thread(gs_awaited + offsetof(rt::Awaited, returned)), x86::RSP);
      slow_if(Emitter::BelowOrEqual);
      break;
    case Op::NoteStack: return e_.mov(thread(gs_awaited + offsetof(rt::Awaited, moved_from)), x86::RSP);
    case Op::TellStack:
      routine = rt::StackMoves;
      e_.cmp(thread(gs_awaited + offsetof(rt::Awaited, moved)), x86::RSP);
      slow_if(Emitter::BelowOrEqual);
      break;
    default: CHECK(false);
  }
  for (uint32_t from : slow) {
    add_frame_tail(kind, from, argument, e_.offset(), t, u);
    tails_.back().number = routine;
    tails_.back().second = second;
  }
  if (!keeps) return;
  e_.mov(x86::RAX, thread(gs_spill(3)));
  e_.add_al(0x7f);  // (overflows if it was 1)
  e_.sahf();
  e_.mov(x86::RAX, thread(gs_spill(2)));
}

}  // namespace weir::instrument
