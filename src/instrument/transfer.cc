// Jumps, calls, returns and system calls.

#include <algorithm>
#include <array>

#include "instrument/lowering.h"
#include "x86/encoding.h"

namespace weir::instrument {

using x86::BlockId;
using x86::Insn;
using x86::no_block;

namespace {
// A link is patched while others run: its displacement, which will stand `ahead` bytes from here, must be within a cache line.
void keep_in_line(Emitter& e, uint32_t ahead) {
  while (e.pc_at(e.offset() + ahead).value % 64 > 60) e.nop();
}
}  // namespace

// Is a jump at the end of `from` surely within 127 bytes of the block `to`, which is not emitted yet?
bool Lowering::is_surely_near(BlockId from, BlockId to) const {
  return body_[to] == ~0u && to > from && edges_.empty() && bound_[to - 1] - bound_[from] < 92;
}

// jmp to a block of this function: two bytes where it is surely near enough.
void Lowering::jump_block(BlockId target, BlockId from) {
  if (body_[target] != ~0u) {
    int64_t distance = int64_t(body_[target]) - (e_.offset() + 2);
    if (distance >= -128) return e_.jmp_short_to(body_[target]);
  }
  bool near = from != no_block && is_surely_near(from, target);
  fixups_.push_back({near ? e_.jmp_short() : e_.jmp(), target, near});
}

void Lowering::branch(BlockId b, const Insn& insn, std::span<const std::byte> bytes) {
  const x86::Block& block = f_.blocks[b];
  const Insertion* taken_probe = nullptr;
  for (const Insertion* i : std::ranges::equal_range(edges_, b, {}, &Insertion::index))
    if (i->where == Where::Taken) taken_probe = i;
  if (block.taken == no_block && !taken_probe) {
    mark(Mark::Exact, insn.pc);
    keep_in_line(e_, insn.shape->short_only ? insn.shape->length + 3u : 2);
  }
  mark(insn.shape->short_only ? Mark::Exact : Mark::Run, insn.pc);
  uint32_t displacement;
  if (insn.shape->short_only) {
    // jrcxz L1; jmp short L2; L1: jmp target; L2:
    e_.copy(bytes.first(insn.shape->length));
    uint32_t taken = e_.offset() - 1, behind = e_.jmp_short();
    e_.comes_here_short(taken);
    mark(Mark::Exact, insn.target);
    displacement = e_.jmp();
    e_.comes_here_short(behind);
  } else {
    BlockId t = block.taken;
    if (t != no_block && !taken_probe) {
      int64_t back = body_[t] == ~0u ? 1 : int64_t(body_[t]) - (e_.offset() + 2);
      bool near = back <= 0 ? back >= -128 : is_surely_near(b, t);
      if (near) {
        fixups_.push_back({e_.jcc_short(insn.shape->condition), t, true});
        return fall_through(b, block.end);
      }
    }
    displacement = e_.jcc(insn.shape->condition);
  }
  if (taken_probe) tails_.push_back({Tail::Edge, displacement, &insn, insn.target, b});
  else if (block.taken != no_block) fixups_.push_back({displacement, block.taken, false});
  else link(displacement, insn.target);
  fall_through(b, block.end);
}

// The place that a call comes back to: through the table, with rcx in its slot.
void Lowering::return_site(BlockId b, AppPc address) {
  BlockId to = f_.blocks[b].fallthrough;
  if (to == no_block) return;  // it does not come back, as far as is known; if it does, the site is translated then
  out_.table.push_back({address, e_.offset(), true});
  for (const Insertion* i : std::ranges::equal_range(edges_, b, {}, &Insertion::index))
    if (i->where == Where::FallThrough) arrivals_.push_back(i);
  for (const Insertion* i : std::ranges::equal_range(edges_, to, {}, &Insertion::index))
    if (i->where == Where::ReturnSite) arrivals_.push_back(i);
  arrive(to, address);
  if (to != b + 1) {
    mark(Mark::Exact, address);
    jump_block(to, b);
  }
}

void Lowering::call(BlockId b, const Insn& insn) {
  mark(Mark::Run, insn.pc);
  tails_.push_back({Tail::CallThunk, e_.call(), &insn, insn.target});
  return_site(b, insn.next());
}

// mov ecx, r/m32 (or rcx, r/m64) for the operand of an indirect jump or call.
void Lowering::load_target(const Insn& insn, std::span<const std::byte> bytes, bool wide) {
  const x86::Shape& s = *insn.shape;
  uint8_t opcode = s.modrm_offset - 1, rex = 0;
  std::array<uint8_t, x86::max_insn_length> prefixes;
  size_t count = 0;
  bool is_far = has_far_operands_ && is_out_of_reach(insn, in_.base);
  if (is_far) e_.movabs(x86::RCX, insn.target.value);
  for (uint8_t i = 0; i < opcode; i++) {
    auto byte = static_cast<uint8_t>(bytes[i]);
    if ((byte == 0x64 && !s.uses_gs) || byte == 0x67) prefixes[count++] = byte;
    if (i == opcode - 1 && (byte & 0xf0) == 0x40 && !is_far) rex = 0x40 | (byte & 3);
  }
  constexpr std::array at_rcx{std::byte{x86::RCX}};
  std::span<const std::byte> and_modrm = bytes.subspan(s.modrm_offset, s.length - s.modrm_offset);
  if (is_far) and_modrm = at_rcx;
  ProgramOperand operand{std::span(prefixes).first(count), rex, and_modrm};
  if (s.uses_gs) e_.lea(x86::RCX, operand);  // the address first
  else wide ? e_.mov(x86::RCX, operand) : e_.mov32(x86::RCX, operand);
  if (s.rip_relative && !is_far) e_.set_displacement(e_.offset() - 4, insn.target - AppPc{e_.pc().value});
  if (!s.uses_gs) return;
  e_.mov(gs(gs_spill(0)), x86::RAX);
  e_.mov(x86::RAX, gs(gs_app));
  if (!wide) mark(Mark::Middle, insn.pc, rt::RestoreRcx | rt::RestoreSpill0, out_.marks.back().resume, x86::RAX);
  Memory there = indexed(x86::RAX, x86::RCX);
  wide ? e_.mov(x86::RCX, there) : e_.mov32(x86::RCX, there);
  e_.mov(x86::RAX, gs(gs_spill(0)));
}

void Lowering::look_up() {
  if (in_.table <= INT32_MAX) return e_.mov(x86::RCX, scaled(x86::RCX, 8, static_cast<int32_t>(in_.table)));
  e_.mov(gs(gs_spill(0)), x86::RAX);
  e_.movabs(x86::RAX, in_.table);
  e_.mov(x86::RCX, indexed(x86::RAX, x86::RCX, 8));
  e_.mov(x86::RAX, gs(gs_spill(0)));
}

// Unless it is 0, to rcx.
void Lowering::go_on() {
  uint32_t miss = e_.jrcxz();
  e_.jmp(x86::RCX);
  e_.comes_here_short(miss);
}

// rcx goes to its slot. From here on a fault finds it there, and begins the instruction again.
void Lowering::save_rcx(const Insn& insn) {
  uint32_t begin = e_.offset();
  mark(Mark::Exact, insn.pc, 0, begin);
  e_.mov(gs(gs_rcx), x86::RCX);
  mark(Mark::Middle, insn.pc, rt::RestoreRcx, begin);
}

void Lowering::indirect_jump(const Insn& insn, std::span<const std::byte> bytes) {
  save_rcx(insn);
  load_target(insn, bytes, false);
  look_up();
  go_on();
  out_.exits.push_back({Exit::Jump, false, 0, 0, insn.pc});
  tails_.push_back({Tail::IndirectMiss, e_.jmp(), &insn, {}, static_cast<uint32_t>(out_.exits.size() - 1)});
}

void Lowering::indirect_call(BlockId b, const Insn& insn, std::span<const std::byte> bytes) {
  save_rcx(insn);
  load_target(insn, bytes, false);
  look_up();
  out_.exits.push_back({Exit::Call, false, 0, 0, insn.pc});
  tails_.push_back({Tail::IndirectCallThunk, e_.call(), &insn, {}, static_cast<uint32_t>(out_.exits.size() - 1)});
  return_site(b, insn.next());
}

void Lowering::return_(const Insn& insn, std::span<const std::byte> bytes) {
  const x86::Shape& s = *insn.shape;
  uint16_t pop = 0;
  if (s.imm_size == 2) memcpy(&pop, &bytes[s.imm_offset], 2);
  save_rcx(insn);
  e_.mov32(x86::RCX, at(x86::RSP));
  look_up();
  uint32_t miss = e_.jrcxz();
  e_.mov(at(x86::RSP), x86::RCX);
  pop ? e_.ret(pop) : e_.ret();
  e_.comes_here_short(miss);
  out_.exits.push_back({Exit::Return, false, pop, 0, insn.pc});
  tails_.push_back({Tail::ReturnMiss, e_.jmp(), &insn, {}, static_cast<uint32_t>(out_.exits.size() - 1)});
}

// lretq pops rip and cs; iretq rip, cs, rflags, rsp and ss. The runtime does that, when what is popped has been touched here, where it
// faults as it does natively.
void Lowering::far_return(const Insn& insn, std::span<const std::byte> bytes) {
  bool is_interrupt = bytes[insn.shape->length - 1u] == std::byte{0xcf};
  save_rcx(insn);
  e_.mov(x86::RCX, at(x86::RSP, is_interrupt ? 32 : 8));
  e_.mov(x86::RCX, at(x86::RSP));
  e_.mov(gs(offsetof(rt::ThreadBlock, target)), x86::RCX);
  e_.mov32(x86::RCX, 0u);  // this is no miss
  out_.exits.push_back({is_interrupt ? Exit::InterruptReturn : Exit::FarReturn, false, 0, 0, insn.pc});
  e_.mov32(gs(offsetof(rt::ThreadBlock, exit_id)), in_.first_exit + static_cast<uint32_t>(out_.exits.size() - 1));
  e_.jmp(gs(offsetof(rt::ThreadBlock, enter_indirect)));
}

// See rt/syscalls.cc. Behind the call rcx is the program's own next pc, where anybody looks.
void Lowering::system_call(BlockId b, const Insn& insn) {
  if (rax_ < 0 || rt::is_engine_call(rax_)) {
    mark(Mark::Exact, insn.pc);
    uint32_t in_line = e_.lea_ahead(x86::RCX);
    e_.jmp(gs(offsetof(rt::ThreadBlock, enter_syscall)));
    e_.comes_here(in_line);
  }
  mark(Mark::Exact, insn.pc);
  e_.syscall();
  AppPc next = insn.next();
  BlockId to = f_.blocks[b].fallthrough;
  bool wants_rcx = to == no_block || is_live(to, x86::RCX);
  mark(Mark::Exact, next, rt::SetRcxToPc, e_.offset() + (wants_rcx ? 10 : 0));
  if (wants_rcx) e_.movabs(x86::RCX, next.value);
  fall_through(b, next);
}

CachePc Lowering::known(AppPc target) const {
  if (target == f_.entry) return e_.pc_at(out_.entry);
  CachePc pc = in_.find(target);
  return pc && Emitter::reaches(in_.base, pc) ? pc : CachePc{};
}

// The 32-bit displacement at `displacement` leads to `target`, now or when it has been translated.
void Lowering::link(uint32_t displacement, AppPc target) {
  if (CachePc pc = known(target)) {
    e_.set_displacement(displacement, pc - e_.pc_at(displacement + 4));
    out_.exits.push_back({Exit::Direct, true, 0, displacement, target});
  } else {
    tails_.push_back({Tail::LinkStub, displacement, nullptr, target});
  }
}

void Lowering::jump_out(AppPc target) {
  keep_in_line(e_, 1);
  link(e_.jmp(), target);
}

// Its low half; and the upper half, unless the call has pushed the same.
void Lowering::store_return_address(AppPc address) {
  e_.mov32(at(x86::RSP), static_cast<uint32_t>(address.value));
  if (address.value >> 32 == in_.base.value >> 32 && (in_.base.value + in_.out.size()) >> 32 == in_.base.value >> 32)
    return;
  e_.mov32(at(x86::RSP, 4), static_cast<uint32_t>(address.value >> 32));
}

void write_stub(std::span<std::byte> out, uint32_t exit_id) {
  Emitter e(out, {});
  e.mov32(gs(offsetof(rt::ThreadBlock, exit_id)), exit_id);
  e.jmp(gs(offsetof(rt::ThreadBlock, enter_link)));
}

void write_far_jump(std::span<std::byte> out, CachePc to) {
  __atomic_store_n(reinterpret_cast<uint64_t*>(out.data() + 8), to.value, __ATOMIC_RELEASE);
  Emitter e(out, {});
  e.jmp(relative(8));
}

void write_table_entry(std::span<std::byte> out, CachePc at, CachePc to) {
  Emitter e(out, at);
  e.mov(x86::RCX, gs(gs_rcx));
  e.jmp(to);
}

namespace {
void look_in_runtime(Emitter& e, CachePc record) {
  e.lea(x86::RCX, e.place(record));
  e.jmp(gs(offsetof(rt::ThreadBlock, enter_guard)));
}
}  // namespace

CachePc write_guard(std::span<std::byte> out, CachePc at, CachePc record) {
  Emitter e(out, at);
  e.mov(gs(gs_rcx), x86::RCX);
  CachePc through_table = e.pc();
  look_in_runtime(e, record);
  return through_table;
}

namespace {
// A guard's own registers: these two, which are put back, and rcx, which waits in its slot. It leaves the flags alone.
constexpr Zmm zmm30{30};
constexpr Mask k7{7};

void keep_vector(Emitter& e) {
  e.vmovdqu64(gs(offsetof(rt::ThreadBlock, zmm30)), zmm30);
  e.kmovq(gs(offsetof(rt::ThreadBlock, k7)), k7);
}

void put_vector_back(Emitter& e) {
  e.vmovdqu64(zmm30, gs(offsetof(rt::ThreadBlock, zmm30)));
  e.kmovq(k7, gs(offsetof(rt::ThreadBlock, k7)));
}

// Sets rcx to 0 if both are the same, of `size` bytes up to 64.
void compare(Emitter& e, CachePc a, CachePc b, uint64_t size) {
  bool is_part = size < 64;
  if (is_part) {
    e.movabs(x86::RCX, (uint64_t{1} << size) - 1);
    e.kmovq(k7, x86::RCX);
    e.vmovdqu8(zmm30, k7, e.place(a));
  } else {
    e.vmovdqu64(zmm30, e.place(a));
  }
  e.vpcmpneqb(k7, is_part ? k7 : Mask{0}, zmm30, e.place(b));
  e.kmovq(x86::RCX, k7);
}
}  // namespace

CachePc write_wide_guard(std::span<std::byte> out, CachePc at, CachePc record, CachePc to, std::span<const Compared> code) {
  Emitter e(out, at);
  std::vector<uint32_t> changed;  // displacements of jumps
  e.mov(gs(gs_rcx), x86::RCX);
  CachePc through_table = e.pc();
  keep_vector(e);
  for (const Compared& c : code)
    for (uint64_t done = 0; done < c.size; done += 64) {
      // (The last 64 bytes, and some once more, rather than a part.)
      uint64_t begin = c.size >= 64 ? std::min(done, c.size - 64) : 0;
      compare(e, c.code + static_cast<int64_t>(begin), c.was + static_cast<int64_t>(begin), std::min<uint64_t>(c.size, 64));
      uint32_t same = e.jrcxz();
      changed.push_back(e.jmp());
      e.comes_here_short(same);
    }
  put_vector_back(e);
  e.jmp(to);
  for (uint32_t displacement : changed) e.comes_here(displacement);
  put_vector_back(e);
  look_in_runtime(e, record);
  return through_table;
}

void Lowering::emit_tail(const Tail& t) {
  auto leave = [&](uint32_t exit, uint32_t entry) {
    e_.mov32(gs(offsetof(rt::ThreadBlock, exit_id)), in_.first_exit + exit);
    e_.jmp(gs(entry));
  };
  auto miss = [&] {
    e_.mov(gs(offsetof(rt::ThreadBlock, target)), x86::RCX);
    leave(t.number, offsetof(rt::ThreadBlock, enter_indirect));
  };
  if (t.from) e_.comes_here(t.from);
  switch (t.kind) {
    case Tail::CallThunk:
      store_return_address(t.insn->next());
      jump_out(t.target);
      break;
    case Tail::IndirectCallThunk:
      store_return_address(t.insn->next());
      go_on();
      e_.lea(x86::RSP, at(x86::RSP, 8));  // (the operand is that before the push)
      e_.mov(x86::RCX, gs(gs_rcx));
      load_target(*t.insn, bytes_of(*t.insn), true);
      e_.lea(x86::RSP, at(x86::RSP, -8));
      miss();
      break;
    case Tail::IndirectMiss:
      e_.mov(x86::RCX, gs(gs_rcx));
      load_target(*t.insn, bytes_of(*t.insn), true);
      miss();
      break;
    case Tail::ReturnMiss:
      e_.mov(x86::RCX, at(x86::RSP));
      e_.lea(x86::RSP, at_wide(x86::RSP, 8 + out_.exits[t.number].pops));  // (the runtime need not know what missed)
      miss();
      break;
    case Tail::LinkStub: {
      uint32_t stub = e_.offset();
      out_.exits.push_back({Exit::Direct, false, 0, t.from, t.target, stub});
      leave(static_cast<uint32_t>(out_.exits.size() - 1), offsetof(rt::ThreadBlock, enter_link));
      break;
    }
    case Tail::TableEntry:
      out_.table.push_back({t.target, e_.offset()});
      mark(Mark::Exact, t.target, rt::RestoreRcx, e_.offset() + restore_size);
      e_.mov(x86::RCX, gs(gs_rcx));
      jump_block(t.number, no_block);
      break;
    case Tail::Routine:
    case Tail::Arrival:
    case Tail::Own: emit_frame_tail(t); break;
    case Tail::Edge: {
      const x86::Block& block = f_.blocks[t.number];
      for (const Insertion* i : std::ranges::equal_range(edges_, t.number, {}, &Insertion::index))
        if (i->where == Where::Taken)
          probe(in_.plan.ops_of(*i), block.taken == no_block ? x86::RegSet::all() : live_.live_in[block.taken], t.target);
      mark(Mark::Exact, t.target);
      if (block.taken != no_block) jump_block(block.taken, no_block);
      else jump_out(t.target);
      break;
    }
  }
}

}  // namespace weir::instrument
