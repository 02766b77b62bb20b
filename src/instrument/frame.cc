// The parallel stack, inline. Calls push without writing flags, which may be live there; where returns and arrivals must keep
// them, they go through ah and al (lahf, seto).
//
// With t and u two registers, and `frame` the one on top when it is popped:
//     if (--cells[callee] == 0) record.total += clock - frame.clock        a call inside a call of the same function counts once
//     self = self_clock - frame.self_clock;  is it in record.spread?  self_clock = frame.self_clock

#include "instrument/lowering.h"

namespace weir::instrument {

using x86::Gpr;

namespace {

constexpr uint32_t gs_top = offsetof(rt::ThreadBlock, frames_top);
constexpr int8_t size = sizeof(rt::Frame);
static_assert(offsetof(rt::Frame, site) + 4 == offsetof(rt::Frame, callee));
constexpr int8_t site_at = offsetof(rt::Frame, site), callee_at = offsetof(rt::Frame, callee),
                 clock_at = offsetof(rt::Frame, begin.clock), self_at = offsetof(rt::Frame, begin.self),
                 rsp_at = offsetof(rt::Frame, rsp);
constexpr uint32_t gs_self_bias = offsetof(rt::ThreadBlock, self_bias),
                   gs_leaf = offsetof(rt::ThreadBlock, leaf.begin.clock),
                   gs_leaf_self = offsetof(rt::ThreadBlock, leaf.begin.self),
                   gs_leaf_site = offsetof(rt::ThreadBlock, leaf.site);

constexpr uint32_t gs_argument(uint32_t n) { return offsetof(rt::ThreadBlock, routine_args) + 8 * n; }
uint32_t gs_cell(Counter c, uint32_t n = 0) { return gs_counter({c.index + n}); }

uint8_t rex(Gpr reg, Gpr rm) { return uint8_t(0x48 | (reg >> 3) << 2 | rm >> 3); }

// op reg, [base + disp8], 64 bits; 01 add [m], r; 03 add r, [m]; 2b sub r, [m]; 39 cmp [m], r; 3b cmp r, [m]; 89, 8b mov
void memory(Emitter& e, uint8_t op, Gpr reg, Gpr base, int8_t disp) {
  e.bytes(rex(reg, base), op, 0x40 | (reg & 7) << 3 | (base & 7));
  if ((base & 7) == 4) e.bytes(0x24);
  e.bytes(disp);
}
// mov dword [base + disp8], imm
void store_imm(Emitter& e, Gpr base, int8_t disp, uint32_t imm) {
  if (base >> 3) e.bytes(0x41);
  e.bytes(0xc7, 0x40 | (base & 7));
  if ((base & 7) == 4) e.bytes(0x24);
  e.bytes(disp);
  e.u32(imm);
}
// op reg, [base + disp8], 32 bits
void memory32(Emitter& e, uint8_t op, Gpr reg, Gpr base, int8_t disp) {
  if (uint8_t r = rex(reg, base) & 7; r) e.bytes(0x40 | r);
  e.bytes(op, 0x40 | (reg & 7) << 3 | (base & 7));
  if ((base & 7) == 4) e.bytes(0x24);
  e.bytes(disp);
}
// and r, imm8
void and_imm(Emitter& e, Gpr r, int imm) { e.bytes(0x48 | r >> 3, 0x83, 0xe0 | (r & 7), static_cast<uint8_t>(imm)); }
// op reg, gs:[disp], 64 bits
void gs_op(Emitter& e, uint8_t op, Gpr reg, uint32_t disp) {
  e.bytes(0x65, 0x48 | (reg >> 3) << 2, op, 0x04 | (reg & 7) << 3, 0x25);
  e.u32(disp);
}
// lea r, [a + b]
void lea_sum(Emitter& e, Gpr r, Gpr a, Gpr b) {
  e.bytes(0x48 | (r >> 3) << 2 | (b >> 3) << 1 | a >> 3, 0x8d, 0x44 | (r & 7) << 3, (b & 7) << 3 | (a & 7), 0);
}

// What a frame holds of a call.
uint32_t site_of(const Op& op) { return op.counter.index | (op.callee.index ? rt::direct_site : 0); }
uint32_t callee_of(const Op& op) { return op.callee.index ? op.callee.index : rt::not_arrived; }

constexpr uint8_t jae = 0x73, je = 0x74, jne = 0x75, jbe = 0x76;
// A short jump forward over what `skipped` emits.
template <class F>
void skip_if(Emitter& e, uint8_t condition, F skipped) {
  e.bytes(condition, 0);
  uint32_t from = e.offset();
  skipped();
  CHECK(e.offset() - from < 128);
  e.patch_u8(from - 1, static_cast<uint8_t>(e.offset() - from));
}

static_assert(rt::clock_cells == 2);

// An instruction with xmm31 and [base + disp8 * unit] or, with mod 3, a general register.
void vector(Emitter& e, uint8_t map, uint8_t p1, uint8_t p2, uint8_t opcode, uint8_t mod, Gpr base) {
  e.bytes(0x62, (base >> 3 ? 0x40 : 0x60) | map, p1, p2, opcode, mod << 6 | 7 << 3 | (base & 7));
  if (mod != 3 && (base & 7) == 4) e.bytes(0x24);
}
// vmovdqu64 [base + disp], xmm31
void store_times(Emitter& e, Gpr base, int disp) {
  vector(e, 1, 0xfe, 0x08, 0x7f, 1, base);
  e.bytes(disp / 16);
}
// vmovhps xmm31, xmm31, [base + disp]
void load_self_clock(Emitter& e, Gpr base, int disp) {
  vector(e, 1, 0x04, 0x00, 0x16, 1, base);
  e.bytes(disp / 8);
}
// vmovq r, xmm31
void get_clock(Emitter& e, Gpr r) { vector(e, 1, 0xfd, 0x08, 0x7e, 3, r); }
// vpextrq r, xmm31, 1
void get_self_clock(Emitter& e, Gpr r) {
  vector(e, 3, 0xfd, 0x08, 0x16, 3, r);
  e.bytes(1);
}
// vmovdqu64 gs:[disp], xmm31; vmovhps xmm31, xmm31, gs:[disp]
void store_times_gs(Emitter& e, uint32_t disp) {
  e.bytes(0x65, 0x62, 0x61, 0xfe, 0x08, 0x7f, 0x3c, 0x25);
  e.u32(disp);
}
void load_self_clock_gs(Emitter& e, uint32_t disp) {
  e.bytes(0x65, 0x62, 0x61, 0x04, 0x00, 0x16, 0x3c, 0x25);
  e.u32(disp);
}
static_assert(clock_at % 16 == 0 && size % 16 == 0 && self_at == clock_at + 8);

}  // namespace

// u = the clock.
void Lowering::read_clock(Gpr u) {
  if (register_clock_) return get_clock(e_, u);
  e_.load_gs(u, gs_counter({0}));
  gs_op(e_, 0x03, u, gs_counter({1}));
}

// What passed since the frame below t was pushed goes to `total`; u is lost.
void Lowering::add_total(Gpr t, Gpr u, uint32_t total) {
  read_clock(u);
  memory(e_, 0x2b, u, t, clock_at - size);
  gs_op(e_, 0x01, u, total);
}

// The frame below t ends, and with it what the self clock said in it; u = its own time.
void Lowering::end_frame(Gpr t, Gpr u) {
  if (register_clock_) {
    get_self_clock(e_, u);
    memory(e_, 0x2b, u, t, self_at - size);
    load_self_clock(e_, t, self_at - size);
  } else {
    read_clock(u);
    gs_op(e_, 0x03, u, gs_self_bias);
    memory(e_, 0x2b, u, t, self_at - size);
    gs_op(e_, 0x29, u, gs_self_bias);
  }
  e_.lea(t, t, -size);
  e_.store_gs(t, gs_top);
}

// The runtime does it. Registers are kept, and flags where they must.
void Lowering::call_routine(rt::Routine routine, uint32_t a, uint32_t b, Door door) {
  set_argument(0, a);
  if (routine != rt::Routine::Leave) set_argument(1, b);
  go_through(door, routine);
}

void Lowering::set_argument(uint32_t n, uint32_t value) {
  e_.bytes(0x65, 0x48, 0xc7, 0x04, 0x25);  // mov qword gs:[…], imm32
  e_.u32(gs_argument(n));
  e_.u32(value);
}

void Lowering::go_through(Door door, rt::Routine routine) {
  if (door != Door::Light) e_.store_gs_imm(offsetof(rt::ThreadBlock, exit_id), static_cast<uint32_t>(routine));
  if (!rcx_in_slot_) e_.store_gs(x86::RCX, gs_rcx);
  e_.bytes(0x48, 0x8d, 0x0d);  // lea rcx, [behind the jump]
  e_.u32(8);
  auto light = static_cast<uint32_t>(routine);
  CHECK(door != Door::Light || light < rt::light_routines);
  e_.jump_gs(door == Door::Light   ? offsetof(rt::ThreadBlock, enter_light) + light * 8
             : door == Door::Probe ? offsetof(rt::ThreadBlock, enter_probe)
                                   : offsetof(rt::ThreadBlock, enter_routine));
  if (!rcx_in_slot_) e_.load_gs(x86::RCX, gs_rcx);
}

// ZF: the frames below t are several tail calls that end together, at rsp + `end`. Those are the runtime's: it ends long chains.
void Lowering::compare_chain(Gpr t, Gpr u, int32_t end) {
  constexpr int several = 3;
  e_.lea(u, x86::RSP, end | static_cast<int32_t>(rt::FrameIsTail));
  memory(e_, 0x33, u, t, rsp_at - several * size);  // xor
  and_imm(e_, u, ~int8_t{rt::FrameHasOs | rt::FrameIsCounted});
}

void Lowering::push_frame(const Op& op, Gpr t, Gpr u) {
  if (register_clock_) {
    e_.load_gs(t, gs_top);
    store_times(e_, t, clock_at);
  } else {
    e_.load_gs(u, gs_counter({0}));
    e_.load_gs(t, gs_counter({1}));
    lea_sum(e_, u, u, t);
    e_.load_gs(t, gs_top);
    memory(e_, 0x89, u, t, clock_at);
    e_.load_gs(t, gs_self_bias);
    lea_sum(e_, u, u, t);
    e_.load_gs(t, gs_top);
    memory(e_, 0x89, u, t, self_at);
  }
  store_imm(e_, t, site_at, site_of(op));
  store_imm(e_, t, callee_at, callee_of(op));
  if (op.value) e_.lea(u, x86::RSP, static_cast<int32_t>(op.value));
  memory(e_, 0x89, op.value ? u : x86::RSP, t, rsp_at);
  e_.lea(t, t, size);
  e_.store_gs(t, gs_top);
  if (!op.callee.index) return;
  if (op.flags_are_dead) return e_.add_gs(gs_cell(op.callee), 1);
  e_.load_gs(t, gs_cell(op.callee));
  e_.lea(t, t, 1);
  e_.store_gs(t, gs_cell(op.callee));
}

void Lowering::begin_leaf(const Op& op, Gpr t, Gpr u) {
  e_.store_gs_imm(gs_leaf_site, op.counter.index);
  if (register_clock_) return store_times_gs(e_, gs_leaf);
  e_.load_gs(u, gs_counter({0}));
  e_.load_gs(t, gs_counter({1}));
  lea_sum(e_, u, u, t);
  e_.store_gs(u, gs_leaf);
  e_.load_gs(t, gs_self_bias);
  lea_sum(e_, u, u, t);
  e_.store_gs(u, gs_leaf_self);
}

// A function that calls nobody has only time of its own. (What handlers took meanwhile they have added when they ended.) Without a call
// under way control came by a jump: the table knows one place for an address, whoever leads there.
void Lowering::end_leaf(const Op& op, Gpr u) {
  compare_leaf_site();
  skip_if(e_, je, [&] {
    if (register_clock_) {
      get_self_clock(e_, u);
      gs_op(e_, 0x2b, u, gs_leaf_self);
      load_self_clock_gs(e_, gs_leaf_self);
    } else {
      read_clock(u);
      gs_op(e_, 0x03, u, gs_self_bias);
      gs_op(e_, 0x2b, u, gs_leaf_self);
      gs_op(e_, 0x29, u, gs_self_bias);
    }
    gs_op(e_, 0x01, u, gs_cell(op.counter, rt::RecordTotal));
    e_.store_gs_imm(gs_leaf_site, 0);
    note_self(op, u);
  });
}

// ZF: no leaf call is under way. cmp dword gs:[…], 0
void Lowering::compare_leaf_site() {
  e_.bytes(0x65, 0x83, 0x3c, 0x25);
  e_.u32(gs_leaf_site);
  e_.bytes(0);
}

// The record's spread of self times has u in it, or the runtime widens it. u is lost.
void Lowering::note_self(const Op& op, Gpr u) {
  uint32_t spread = gs_cell(op.counter, rt::RecordSpread);
  gs_op(e_, 0x2b, u, spread);
  gs_op(e_, 0x3b, u, spread + 8);
  e_.bytes(0x0f, jae + 0x10);
  e_.u32(0);
  add_frame_tail(Tail::Extreme, e_.offset() - 4, spread, e_.offset(), u, u);
}

void Lowering::pop_direct(const Op& op, Gpr t, Gpr u) {
  e_.bytes(0x65, 0x48, 0xff, 0x0c, 0x25);  // dec qword gs:[cell]
  e_.u32(gs_cell(op.callee));
  skip_if(e_, jne, [&] { add_total(t, u, gs_cell(op.counter, rt::RecordTotal)); });
  end_frame(t, u);
  note_self(op, u);
}

void Lowering::pop_indirect(const Op& op, Gpr t, Gpr u) {
  memory32(e_, 0x8b, u, t, callee_at - size);
  e_.bytes(0x65);
  if (u >> 3) e_.bytes(0x44);
  e_.bytes(0x3b, 0x04 | (u & 7) << 3, 0x25);  // cmp u32, gs:[…]
  e_.u32(gs_cell(op.counter, rt::RecordCallee));
  e_.bytes(0x0f, jne + 0x10);
  e_.u32(0);
  size_t other = tails_.size();
  add_frame_tail(Tail::OtherCallee, e_.offset() - 4, op.counter.index, 0, t, u);
  tails_.back().second = static_cast<uint32_t>(op.value);
  e_.add_gs(gs_cell(op.counter, rt::RecordCalls), 1);
  leave_callee(u);
  skip_if(e_, jne, [&] { add_total(t, u, gs_cell(op.counter, rt::RecordTotal)); });
  end_frame(t, u);
  note_self(op, u);
  tails_[other].back = e_.offset();
}

// dec qword gs:[u*8 + counters]
void Lowering::leave_callee(Gpr u) {
  e_.bytes(0x65, 0x48 | (u >> 3) << 1, 0xff, 0x0c, 0xc5 | (u & 7) << 3);
  e_.u32(rt::counters_offset);
}

// Out of line: the record is where site and callee hash to. u is the callee.
void Lowering::pop_other_callee(const Tail& tail) {
  Gpr t = tail.t, u = tail.u;
  std::vector<uint32_t> slow;
  auto keep_rax = [&] {
    if (!tail.rax_in_slot) e_.store_gs(x86::RAX, gs_spill(2));
  };
  auto take_rax_back = [&] {
    if (!tail.rax_in_slot) e_.load_gs(x86::RAX, gs_spill(2));
  };
  // op reg, gs:[rax + a field of the record]
  auto record = [&](uint8_t opcode, Gpr reg, size_t field, bool wide = true) {
    e_.bytes(0x65);
    if (uint8_t r = (wide ? 8 : 0) | (reg >> 3) << 2; r) e_.bytes(0x40 | r);
    e_.bytes(opcode, 0x80 | (reg & 7) << 3);
    e_.u32(static_cast<uint32_t>(rt::others_offset + field));
  };
  constexpr auto no_reg = [](int n) { return static_cast<Gpr>(n); };  // of opcodes that have their rest there
  keep_rax();
  if (u >> 3) e_.bytes(0x41);
  e_.bytes(0x69, 0xc0 | (u & 7));  // imul eax, u, …
  e_.u32(rt::others_hash_callee);
  e_.bytes(0x05);  // add eax, …
  e_.u32(tail.argument * rt::others_hash_site);
  e_.bytes(0xc1, 0xe8, 32 - rt::near_others_bits);  // shr eax, …
  static_assert(sizeof(rt::OtherRecord) == 48);
  e_.bytes(0x48, 0x8d, 0x04, 0x40, 0x48, 0xc1, 0xe0, 4);  // lea rax, [rax + rax*2]; shl rax, 4
  record(0x39, u, offsetof(rt::OtherRecord, callee), false);
  slow.push_back(jump_if(jne));
  record(0x81, no_reg(7), offsetof(rt::OtherRecord, site), false);  // cmp dword […], imm32
  e_.u32(tail.argument);
  slow.push_back(jump_if(jne));
  record(0xff, no_reg(0), offsetof(rt::OtherRecord, calls));  // inc
  leave_callee(u);
  skip_if(e_, jne, [&] {
    read_clock(u);
    memory(e_, 0x2b, u, t, clock_at - size);
    record(0x01, u, offsetof(rt::OtherRecord, total));
  });
  end_frame(t, u);
  record(0x2b, u, offsetof(rt::OtherRecord, self.min));
  record(0x3b, u, offsetof(rt::OtherRecord, self.span));
  uint32_t extreme = jump_if(jae);
  take_rax_back();
  jump_back(tail);
  comes_here(extreme);
  e_.store_gs(u, gs_argument(0));
  e_.bytes(0x48, 0x8d, 0x80);  // lea rax, [rax + …]
  e_.u32(static_cast<uint32_t>(rt::others_offset + offsetof(rt::OtherRecord, self)));
  e_.store_gs(x86::RAX, gs_argument(1));
  take_rax_back();
  go_through(Door::Light, rt::Routine::Extreme);
  jump_back(tail);
  for (uint32_t from : slow) comes_here(from);
  take_rax_back();
  call_routine(rt::Routine::Leave, tail.second, 0, Door::Light);
  jump_back(tail);
}

// Out of line: whoever comes was not called, but jumped to. If it is on the stack of the frame on top, it takes that one's place.
void Lowering::arrive_by_tail_call(const Tail& tail) {
  constexpr int32_t end = 8;  // the frame ends there, above rsp
  Gpr t = tail.t, u = x86::RAX;
  Counter callee{tail.argument};
  uint32_t slow[3];
  if (!tail.rax_in_slot) e_.store_gs(u, gs_spill(2));
  e_.lea(u, x86::RSP, end);
  memory(e_, 0x33, u, t, rsp_at - size);  // xor
  and_imm(e_, u, ~int8_t{rt::FrameIsTail});
  slow[0] = jump_if(jne);
  compare_chain(t, u, end);
  slow[1] = jump_if(je);
  auto load_eax = [&](uint32_t offset) {
    e_.bytes(0x65, 0x8b, 0x04, 0x25);  // mov eax, gs:[…]
    e_.u32(offset);
  };
  load_eax(offsetof(rt::ThreadBlock, jump_caller));
  memory32(e_, 0x3b, u, t, callee_at - size);  // cmp
  slow[2] = jump_if(jne);
  store_times(e_, t, clock_at);
  load_eax(offsetof(rt::ThreadBlock, jump_site));
  memory32(e_, 0x89, u, t, site_at);
  store_imm(e_, t, callee_at, callee.index);
  e_.lea(u, x86::RSP, end | rt::FrameIsTail);
  memory(e_, 0x89, u, t, rsp_at);
  e_.lea(t, t, size);
  e_.store_gs(t, gs_top);
  e_.add_gs(gs_cell(callee), 1);
  if (!tail.rax_in_slot) e_.load_gs(u, gs_spill(2));
  jump_back(tail);
  for (uint32_t from : slow) comes_here(from);
  if (!tail.rax_in_slot) e_.load_gs(u, gs_spill(2));
  call_routine(rt::Routine::TailArrival, callee.index, 0, Door::Light);
  jump_back(tail);
}

// A jump that comes_here() leads to where it is called.
uint32_t Lowering::jump_if(uint8_t condition) {
  e_.bytes(0x0f, condition + 0x10);
  e_.u32(0);
  return e_.offset() - 4;
}
void Lowering::comes_here(uint32_t from) { e_.patch_u32(from, e_.offset() - from - 4); }

void Lowering::jump_back(const Tail& tail) {
  e_.bytes(0xe9);
  e_.u32(tail.back - (e_.offset() + 4));
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
  if (tail.kind == Tail::OtherCallee) {
    pop_other_callee(tail);
  } else if (tail.kind == Tail::Arrival && register_clock_) {
    arrive_by_tail_call(tail);
  } else {
    if (tail.kind == Tail::Extreme) {
      e_.store_gs(tail.u, gs_argument(0));
      set_argument(1, tail.argument);
      go_through(Door::Light, rt::Routine::Extreme);
    } else {
      auto routine = static_cast<rt::Routine>(tail.number);
      call_routine(routine, tail.argument, tail.second, routine == rt::Routine::Resync ? Door::Probe : Door::Light);
    }
    jump_back(tail);
  }
  rcx_in_slot_ = false;
}

void Lowering::frame_op(const Op& op, Gpr t, Gpr u, bool flags_free) {
  std::vector<uint32_t> slow;  // displacements that lead to the runtime
  auto slow_if = [&](uint8_t condition) {
    e_.bytes(0x0f, condition + 0x10);
    slow.push_back(e_.offset());
    e_.u32(0);
  };
  // cmp dword [t + …], imm32: the callee of the frame on top
  auto compare_callee = [&](uint32_t callee) {
    if (t >> 3) e_.bytes(0x41);
    e_.bytes(0x81, 0x78 | (t & 7));
    if ((t & 7) == 4) e_.bytes(0x24);
    e_.bytes(callee_at - size);
    e_.u32(callee);
  };
  rt::Routine routine = rt::Routine::Leave;
  uint32_t argument = 0, second = 0;
  Tail::Kind kind = Tail::Routine;
  bool keeps_flags = !flags_free && (op.kind == Op::PopFrame || op.kind == Op::EndLeaf || op.kind == Op::ArriveFrame ||
                                     op.kind == Op::ResyncFrames);
  bool is_jump = op.kind == Op::CallWith && (static_cast<rt::Routine>(op.value) == rt::Routine::MiddleJump ||
                                             static_cast<rt::Routine>(op.value) == rt::Routine::EnterTail);
  keeps_flags |= is_jump && !flags_free;
  keeps_flags |= op.goes_back && !flags_free && !op.flags_are_dead;
  rax_in_slot_ = keeps_flags;
  if (keeps_flags) {
    e_.store_gs(x86::RAX, gs_spill(2));
    e_.bytes(0x9f, 0x0f, 0x90, 0xc0);  // lahf; seto al
    e_.store_gs(x86::RAX, gs_spill(3));
  }
  switch (op.kind) {
    case Op::PushFrame:
      if (!op.goes_back) return push_frame(op, t, u);
      routine = rt::Routine::EnterTail;
      argument = site_of(op), second = callee_of(op);
      e_.load_gs(t, gs_top);
      compare_chain(t, u, static_cast<int32_t>(op.value));
      slow_if(je);
      push_frame(op, t, u);
      break;
    case Op::BeginLeaf: return begin_leaf(op, t, u);
    case Op::EndLeaf: end_leaf(op, t); break;
    case Op::PopFrame:
      e_.load_gs(t, gs_top);
      memory(e_, 0x39, x86::RSP, t, rsp_at - size);
      slow_if(jne);
      argument = static_cast<uint32_t>(op.value);
      if (op.callee.index) pop_direct(op, t, u);
      else pop_indirect(op, t, u);
      break;
    case Op::ArriveFrame:
      kind = Tail::Arrival, routine = rt::Routine::TailArrival;
      argument = op.callee.index;
      e_.load_gs(t, gs_top);
      compare_callee(rt::not_arrived);
      slow_if(jne);
      store_imm(e_, t, callee_at - size, argument);
      e_.add_gs(gs_cell(op.callee), 1);
      break;
    case Op::ResyncFrames:
      routine = rt::Routine::Resync;
      argument = op.callee.index;
      e_.load_gs(t, gs_top);
      e_.lea(u, x86::RSP, rt::frame_bits);  // (the lowest bits of Frame::rsp say something else)
      memory(e_, 0x39, u, t, rsp_at - size);
      slow_if(jbe);
      compare_callee(op.callee.index);
      slow_if(jne);
      compare_leaf_site();
      slow_if(jne);
      break;
    case Op::CallWith:
      call_routine(static_cast<rt::Routine>(op.value), op.counter.index, op.callee.index,
                   is_jump                     ? Door::Light
                   : flags_free || keeps_flags ? Door::Probe
                                               : Door::Routine);
      break;
    case Op::SetJumpSite:
      e_.store_gs_imm(offsetof(rt::ThreadBlock, jump_site), op.counter.index);
      return e_.store_gs_imm(offsetof(rt::ThreadBlock, jump_caller), op.callee.index);
    default: CHECK(false);
  }
  for (uint32_t from : slow) {
    add_frame_tail(kind, from, argument, e_.offset(), t, u);
    tails_.back().number = static_cast<uint32_t>(routine);
    tails_.back().second = second;
  }
  if (!keeps_flags) return;
  e_.load_gs(x86::RAX, gs_spill(3));
  e_.bytes(0x04, 0x7f, 0x9e);  // add al, 0x7f (overflows if it was 1); sahf
  e_.load_gs(x86::RAX, gs_spill(2));
}

}  // namespace weir::instrument
