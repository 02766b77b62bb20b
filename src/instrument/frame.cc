// The parallel stack, inline. Calls push without writing flags, which may be live there; where returns and arrivals must keep
// them, they go through ah and al (lahf, seto).
//
// With t and u two registers, and `frame` the one on top when it is popped:
//     if (--cells[callee] == 0) record.total += clock - frame.clock        a call inside a call of the same function counts once
//     self = self_clock - frame.self_clock;  record.max, record.min;  self_clock = frame.self_clock

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
// mov r32, [base + disp8]
void load32(Emitter& e, Gpr reg, Gpr base, int8_t disp) {
  if (uint8_t r = rex(reg, base) & 7; r) e.bytes(0x40 | r);
  e.bytes(0x8b, 0x40 | (reg & 7) << 3 | (base & 7));
  if ((base & 7) == 4) e.bytes(0x24);
  e.bytes(disp);
}
// op reg, gs:[disp], 64 bits
void gs_op(Emitter& e, uint8_t op, Gpr reg, uint32_t disp) {
  e.bytes(0x65, 0x48 | (reg >> 3) << 2, op, 0x04 | (reg & 7) << 3, 0x25);
  e.u32(disp);
}
// lea r, [a + b]
void lea_sum(Emitter& e, Gpr r, Gpr a, Gpr b) {
  e.bytes(0x48 | (r >> 3) << 2 | (b >> 3) << 1 | a >> 3, 0x8d, 0x44 | (r & 7) << 3, (b & 7) << 3 | (a & 7), 0);
}
void lea8(Emitter& e, Gpr r, Gpr base, int8_t disp) { memory(e, 0x8d, r, base, disp); }

constexpr uint8_t je = 0x74, jne = 0x75, jbe = 0x76;
// A short jump forward over what `skipped` emits.
template <class F>
void skip_if(Emitter& e, uint8_t condition, F skipped) {
  e.bytes(condition, 0);
  uint32_t from = e.offset();
  skipped();
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

// u = what passed since the frame below t was pushed.
void Lowering::time_frame(Gpr t, Gpr u) {
  if (register_clock_) {
    get_clock(e_, u);
  } else {
    e_.load_gs(u, gs_counter({0}));
    gs_op(e_, 0x03, u, gs_counter({1}));
  }
  memory(e_, 0x2b, u, t, clock_at - size);
}

// The frame below t ends, and with it what the self clock said in it; u, which is what time_frame() left, becomes its own time.
void Lowering::end_frame(Gpr t, Gpr u) {
  if (register_clock_) {
    get_self_clock(e_, u);
    memory(e_, 0x2b, u, t, self_at - size);
    load_self_clock(e_, t, self_at - size);
  } else {
    memory(e_, 0x03, u, t, clock_at - size);
    gs_op(e_, 0x03, u, gs_self_bias);
    memory(e_, 0x2b, u, t, self_at - size);
    gs_op(e_, 0x29, u, gs_self_bias);
  }
  lea8(e_, t, t, -size);
  e_.store_gs(t, gs_top);
}

// The runtime does it. Registers are kept, and flags where they must.
void Lowering::call_routine(rt::Routine routine, uint32_t a, uint32_t b, Door door) {
  auto set_argument = [&](uint32_t n, uint32_t value) {
    e_.bytes(0x65, 0x48, 0xc7, 0x04, 0x25);  // mov qword gs:[…], imm32
    e_.u32(offsetof(rt::ThreadBlock, routine_args) + 8 * n);
    e_.u32(value);
  };
  if (routine != rt::Routine::Leave) set_argument(0, a), set_argument(1, b);
  e_.store_gs_imm(offsetof(rt::ThreadBlock, exit_id), static_cast<uint32_t>(routine));
  e_.store_gs(x86::RCX, gs_rcx);
  e_.bytes(0x48, 0x8d, 0x0d);  // lea rcx, [behind the jump]
  e_.u32(8);
  e_.jump_gs(door == Door::Light   ? offsetof(rt::ThreadBlock, enter_light)
             : door == Door::Probe ? offsetof(rt::ThreadBlock, enter_probe)
                                   : offsetof(rt::ThreadBlock, enter_routine));
  e_.load_gs(x86::RCX, gs_rcx);
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
  store_imm(e_, t, site_at, op.counter.index | (op.callee.index ? rt::direct_site : 0));
  store_imm(e_, t, callee_at, op.callee.index);
  if (op.value) lea8(e_, u, x86::RSP, static_cast<int8_t>(op.value));
  memory(e_, 0x89, op.value ? u : x86::RSP, t, rsp_at);
  lea8(e_, t, t, size);
  e_.store_gs(t, gs_top);
  if (!op.callee.index) return;
  if (op.flags_are_dead) return e_.add_gs(gs_cell(op.callee), 1);
  e_.load_gs(t, gs_cell(op.callee));
  lea8(e_, t, t, 1);
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

void Lowering::end_leaf(const Op& op, Gpr u) {
  if (register_clock_) {
    get_clock(e_, u);
    gs_op(e_, 0x2b, u, gs_leaf);
    gs_op(e_, 0x01, u, gs_cell(op.counter, rt::RecordTotal));
    get_self_clock(e_, u);
    gs_op(e_, 0x2b, u, gs_leaf_self);
    load_self_clock_gs(e_, gs_leaf_self);
  } else {
    e_.load_gs(u, gs_counter({0}));
    gs_op(e_, 0x03, u, gs_counter({1}));
    gs_op(e_, 0x2b, u, gs_leaf);
    gs_op(e_, 0x01, u, gs_cell(op.counter, rt::RecordTotal));
    gs_op(e_, 0x03, u, gs_leaf);
    gs_op(e_, 0x03, u, gs_self_bias);
    gs_op(e_, 0x2b, u, gs_leaf_self);
    gs_op(e_, 0x29, u, gs_self_bias);
  }
  e_.store_gs_imm(gs_leaf_site, 0);
  note_self(op, u);
}

// The record's largest and smallest self time; u is lost.
void Lowering::note_self(const Op& op, Gpr u) {
  gs_op(e_, 0x3b, u, gs_cell(op.counter, rt::RecordMax));
  skip_if(e_, jbe, [&] { e_.store_gs(u, gs_cell(op.counter, rt::RecordMax)); });
  e_.bytes(0x48 | u >> 3, 0xf7, 0xd0 | (u & 7));  // not u
  gs_op(e_, 0x3b, u, gs_cell(op.counter, rt::RecordMin));
  skip_if(e_, jbe, [&] { e_.store_gs(u, gs_cell(op.counter, rt::RecordMin)); });
}

void Lowering::pop_direct(const Op& op, Gpr t, Gpr u) {
  time_frame(t, u);
  e_.bytes(0x65, 0x48, 0xff, 0x0c, 0x25);  // dec qword gs:[cell]
  e_.u32(gs_cell(op.callee));
  skip_if(e_, jne, [&] { gs_op(e_, 0x01, u, gs_cell(op.counter, rt::RecordTotal)); });
  end_frame(t, u);
  note_self(op, u);
}

// The callee is in rax, which frame_op() has saved.
void Lowering::pop_indirect(const Op& op, Gpr t, Gpr u) {
  load32(e_, x86::RAX, t, callee_at - size);
  e_.bytes(0x85, 0xc0, 0x0f, je + 0x10);  // test eax, eax: it did not tell (code written at run time)
  size_t first = tails_.size();
  tails_.push_back({Tail::Routine, e_.offset(), nullptr, {}, static_cast<uint32_t>(rt::Routine::Leave)});
  e_.u32(0);
  e_.bytes(0x65, 0x3b, 0x04, 0x25);  // cmp eax, gs:[…]
  e_.u32(gs_cell(op.counter, rt::RecordCallee));
  e_.bytes(0x0f, jne + 0x10);
  tails_.push_back({Tail::OtherCallee, e_.offset(), nullptr, {}, 0, op.counter.index, 0, t, u});
  e_.u32(0);
  e_.add_gs(gs_cell(op.counter, rt::RecordCalls), 1);
  time_frame(t, u);
  e_.bytes(0x65, 0x48, 0xff, 0x0c, 0xc5);  // dec qword gs:[rax*8 + counters]
  e_.u32(rt::counters_offset);
  skip_if(e_, jne, [&] { gs_op(e_, 0x01, u, gs_cell(op.counter, rt::RecordTotal)); });
  end_frame(t, u);
  note_self(op, u);
  tails_[first].back = tails_[first + 1].back = e_.offset();
}

// Out of line: the record is where site and callee hash to.
void Lowering::pop_other_callee(const Tail& tail) {
  Gpr t = tail.t, u = tail.u;
  std::vector<uint32_t> slow;
  auto slow_if = [&](uint8_t condition) {
    e_.bytes(0x0f, condition + 0x10);
    slow.push_back(e_.offset());
    e_.u32(0);
  };
  // op reg, gs:[rax + a field of the record]
  auto record = [&](uint8_t opcode, Gpr reg, size_t field, bool wide = true) {
    e_.bytes(0x65);
    if (uint8_t r = (wide ? 8 : 0) | (reg >> 3) << 2; r) e_.bytes(0x40 | r);
    e_.bytes(opcode, 0x80 | (reg & 7) << 3);
    e_.u32(static_cast<uint32_t>(rt::others_offset + field));
  };
  constexpr auto no_reg = [](int n) { return static_cast<Gpr>(n); };  // of opcodes that have their rest there
  load32(e_, u, t, callee_at - size);
  if (u >> 3) e_.bytes(0x41);
  e_.bytes(0x69, 0xc0 | (u & 7));  // imul eax, u, …
  e_.u32(rt::others_hash_callee);
  e_.bytes(0x05);  // add eax, …
  e_.u32(tail.argument * rt::others_hash_site);
  e_.bytes(0xc1, 0xe8, 32 - rt::near_others_bits);  // shr eax, …
  static_assert(sizeof(rt::OtherRecord) == 48);
  e_.bytes(0x48, 0x8d, 0x04, 0x40, 0x48, 0xc1, 0xe0, 4);  // lea rax, [rax + rax*2]; shl rax, 4
  record(0x39, u, offsetof(rt::OtherRecord, callee), false);
  slow_if(jne);
  record(0x81, no_reg(7), offsetof(rt::OtherRecord, site), false);  // cmp dword […], imm32
  e_.u32(tail.argument);
  slow_if(jne);
  record(0xff, no_reg(0), offsetof(rt::OtherRecord, calls));              // inc
  e_.bytes(0x65, 0x48 | (u >> 3) << 1, 0xff, 0x0c, 0xc5 | (u & 7) << 3);  // dec qword gs:[u*8 + counters]
  e_.u32(rt::counters_offset);
  // sete byte [t + …]: the frame is not needed any more
  if (t >> 3) e_.bytes(0x41);
  e_.bytes(0x0f, 0x94, 0x40 | (t & 7));
  if ((t & 7) == 4) e_.bytes(0x24);
  e_.bytes(site_at - size);
  time_frame(t, u);
  if (t >> 3) e_.bytes(0x41);
  e_.bytes(0x80, 0x78 | (t & 7));  // cmp byte [t + …], 0
  if ((t & 7) == 4) e_.bytes(0x24);
  e_.bytes(site_at - size, 0);
  skip_if(e_, je, [&] { record(0x01, u, offsetof(rt::OtherRecord, total)); });
  end_frame(t, u);
  record(0x3b, u, offsetof(rt::OtherRecord, max));
  skip_if(e_, jbe, [&] { record(0x89, u, offsetof(rt::OtherRecord, max)); });
  e_.bytes(0x48 | u >> 3, 0xf7, 0xd0 | (u & 7));  // not u
  record(0x3b, u, offsetof(rt::OtherRecord, min));
  skip_if(e_, jbe, [&] { record(0x89, u, offsetof(rt::OtherRecord, min)); });
  e_.bytes(0xe9);
  e_.u32(tail.back - (e_.offset() + 4));
  for (uint32_t from : slow)
    tails_.push_back({Tail::Routine, from, nullptr, {}, static_cast<uint32_t>(rt::Routine::Leave), 0, tail.back});
}

void Lowering::frame_op(const Op& op, Gpr t, Gpr u, bool flags_free) {
  std::vector<uint32_t> slow;  // displacements that lead to the runtime
  auto slow_if = [&](uint8_t condition) {
    e_.bytes(0x0f, condition + 0x10);
    slow.push_back(e_.offset());
    e_.u32(0);
  };
  rt::Routine routine = rt::Routine::Leave;
  uint32_t argument = 0;
  bool keeps_flags = !flags_free && (op.kind == Op::PopFrame || op.kind == Op::EndLeaf || op.kind == Op::ArriveFrame ||
                                     op.kind == Op::ResyncFrames);
  bool is_jump = op.kind == Op::CallWith && static_cast<rt::Routine>(op.value) == rt::Routine::MiddleJump;
  keeps_flags |= is_jump && !flags_free;
  bool keeps_rax = keeps_flags || (op.kind == Op::PopFrame && !op.callee.index);
  if (keeps_rax) e_.store_gs(x86::RAX, gs_spill(2));
  if (keeps_flags) {
    e_.bytes(0x9f, 0x0f, 0x90, 0xc0);  // lahf; seto al
    e_.store_gs(x86::RAX, gs_spill(3));
  }
  switch (op.kind) {
    case Op::PushFrame: return push_frame(op, t, u);
    case Op::BeginLeaf: return begin_leaf(op, t, u);
    case Op::EndLeaf: end_leaf(op, t); break;
    case Op::PopFrame:
      e_.load_gs(t, gs_top);
      memory(e_, 0x39, x86::RSP, t, rsp_at - size);
      slow_if(jne);
      if (op.callee.index) pop_direct(op, t, u);
      else pop_indirect(op, t, u);
      break;
    case Op::ArriveFrame:
      routine = rt::Routine::TailArrival;
      argument = op.callee.index;
      e_.load_gs(t, gs_top);
      load32(e_, u, t, callee_at - size);
      e_.bytes(0x48 | (u >> 3) << 2 | u >> 3, 0x85, 0xc0 | (u & 7) << 3 | (u & 7));  // test u, u
      slow_if(jne);
      store_imm(e_, t, callee_at - size, argument);
      e_.add_gs(gs_cell(op.callee), 1);
      break;
    case Op::ResyncFrames:
      routine = rt::Routine::Resync;
      argument = op.callee.index;
      e_.load_gs(t, gs_top);
      lea8(e_, u, x86::RSP, rt::frame_bits);  // (the lowest bits of Frame::rsp say something else)
      memory(e_, 0x39, u, t, rsp_at - size);
      slow_if(jbe);
      load32(e_, u, t, callee_at - size);
      if (u >> 3) e_.bytes(0x41);
      e_.bytes(0x81, 0xf8 | (u & 7));  // cmp u32, imm
      e_.u32(op.callee.index);
      slow_if(jne);
      break;
    case Op::CallWith:
      call_routine(static_cast<rt::Routine>(op.value), op.counter.index, op.callee.index,
                   is_jump                     ? Door::Light
                   : flags_free || keeps_flags ? Door::Probe
                                               : Door::Routine);
      break;
    case Op::SetJumpSite: return e_.store_gs_imm(offsetof(rt::ThreadBlock, jump_site), op.counter.index);
    default: CHECK(false);
  }
  for (uint32_t from : slow)
    tails_.push_back({Tail::Routine, from, nullptr, {}, static_cast<uint32_t>(routine), argument, e_.offset()});
  if (keeps_flags) {
    e_.load_gs(x86::RAX, gs_spill(3));
    e_.bytes(0x04, 0x7f, 0x9e);  // add al, 0x7f (overflows if it was 1); sahf
  }
  if (keeps_rax) e_.load_gs(x86::RAX, gs_spill(2));
}

}  // namespace weir::instrument
