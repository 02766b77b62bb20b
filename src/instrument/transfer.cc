// Jumps, calls, returns and system calls.

#include <algorithm>

#include "instrument/lowering.h"

namespace weir::instrument {

using x86::BlockId;
using x86::Insn;
using x86::no_block;

namespace {
// A link is patched while others run: its displacement, which will stand `ahead` bytes from here, must be within a cache line.
void keep_in_line(Emitter& e, uint32_t ahead) {
  while (e.pc_at(e.offset() + ahead).value % 64 > 60) e.bytes(0x90);
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
    if (distance >= -128) {
      e_.bytes(0xeb, distance);
      return;
    }
  }
  bool near = from != no_block && is_surely_near(from, target);
  e_.bytes(near ? 0xeb : 0xe9);
  fixups_.push_back({e_.offset(), target, near});
  near ? e_.bytes(0) : e_.u32(0);
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
  if (insn.shape->short_only) {
    // jrcxz L1; jmp short L2; L1: jmp target; L2:
    e_.copy(bytes.first(insn.shape->length - 1u));
    e_.bytes(2, 0xeb, 5);
    mark(Mark::Exact, insn.target);
    e_.bytes(0xe9);
  } else {
    BlockId t = block.taken;
    if (t != no_block && !taken_probe) {
      int64_t back = body_[t] == ~0u ? 1 : int64_t(body_[t]) - (e_.offset() + 2);
      bool near = back <= 0 ? back >= -128 : is_surely_near(b, t);
      if (near) {
        e_.bytes(0x70 | insn.shape->condition);
        fixups_.push_back({e_.offset(), t, true});
        e_.bytes(0);
        return fall_through(b, block.end);
      }
    }
    e_.bytes(0x0f, 0x80 | insn.shape->condition);
  }
  uint32_t displacement = e_.offset();
  e_.u32(0);
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
  e_.bytes(0xe8);
  tails_.push_back({Tail::CallThunk, e_.offset(), &insn, insn.target});
  e_.u32(0);
  return_site(b, insn.next());
}

// mov ecx, r/m32 (or rcx, r/m64) for the operand of an indirect jump or call.
void Lowering::load_target(const Insn& insn, std::span<const std::byte> bytes, bool wide) {
  const x86::Shape& s = *insn.shape;
  uint8_t rex = wide || s.uses_gs ? 0x48 : 0;
  uint8_t opcode = s.modrm_offset - 1;
  bool is_far = has_far_operands_ && is_out_of_reach(insn, in_.base);
  if (is_far) e_.mov_imm64(x86::RCX, insn.target.value);
  for (uint8_t i = 0; i < opcode; i++) {
    auto byte = static_cast<uint8_t>(bytes[i]);
    if ((byte == 0x64 && !s.uses_gs) || byte == 0x67) e_.bytes(byte);
    if (i == opcode - 1 && (byte & 0xf0) == 0x40 && !is_far) rex |= 0x40 | (byte & 3);
  }
  auto modrm = static_cast<uint8_t>(bytes[s.modrm_offset]);
  if (is_far) modrm = x86::RCX;  // [rcx]
  if (rex) e_.bytes(rex);
  e_.bytes(s.uses_gs ? 0x8d : 0x8b, (modrm & 0xc7) | 1 << 3);  // with %gs, the address first
  uint32_t displacement = e_.offset() + s.disp_offset - s.modrm_offset - 1;
  if (!is_far) e_.copy(bytes.subspan(s.modrm_offset + 1u, s.length - s.modrm_offset - 1u));
  if (s.rip_relative && !is_far) {
    int64_t distance = insn.target - AppPc{e_.pc().value};
    CHECK(distance == static_cast<int32_t>(distance));
    e_.patch_u32(displacement, static_cast<uint32_t>(distance));
  }
  if (!s.uses_gs) return;
  e_.store_gs(x86::RAX, gs_spill(0));
  e_.load_gs(x86::RAX, gs_app);
  if (!wide) mark(Mark::Middle, insn.pc, rt::RestoreRcx | rt::RestoreSpill0, out_.marks.back().resume, x86::RAX);
  if (wide) e_.bytes(0x48);
  e_.bytes(0x8b, 0x0c, 0x08);  // mov ecx, [rax + rcx]
  e_.load_gs(x86::RAX, gs_spill(0));
}

// mov rcx, [rcx*8 + table]
void Lowering::look_up() {
  if (in_.table <= INT32_MAX) {
    e_.bytes(0x48, 0x8b, 0x0c, 0xcd);
    e_.u32(static_cast<uint32_t>(in_.table));
    return;
  }
  e_.store_gs(x86::RAX, gs_spill(0));
  e_.mov_imm64(x86::RAX, in_.table);
  e_.bytes(0x48, 0x8b, 0x0c, 0xc8);  // mov rcx, [rax + rcx*8]
  e_.load_gs(x86::RAX, gs_spill(0));
}

// rcx goes to its slot. From here on a fault finds it there, and begins the instruction again.
void Lowering::save_rcx(const Insn& insn) {
  uint32_t begin = e_.offset();
  mark(Mark::Exact, insn.pc, 0, begin);
  e_.store_gs(x86::RCX, gs_rcx);
  mark(Mark::Middle, insn.pc, rt::RestoreRcx, begin);
}

void Lowering::indirect_jump(const Insn& insn, std::span<const std::byte> bytes) {
  save_rcx(insn);
  load_target(insn, bytes, false);
  look_up();
  e_.bytes(0xe3, 2, 0xff, 0xe1, 0xe9);  // jrcxz miss; jmp rcx; miss: jmp tail
  out_.exits.push_back({Exit::Jump, false, 0, 0, insn.pc});
  tails_.push_back({Tail::IndirectMiss, e_.offset(), &insn, {}, static_cast<uint32_t>(out_.exits.size() - 1)});
  e_.u32(0);
}

void Lowering::indirect_call(BlockId b, const Insn& insn, std::span<const std::byte> bytes) {
  save_rcx(insn);
  load_target(insn, bytes, false);
  look_up();
  e_.bytes(0xe8);
  out_.exits.push_back({Exit::Call, false, 0, 0, insn.pc});
  tails_.push_back({Tail::IndirectCallThunk, e_.offset(), &insn, {}, static_cast<uint32_t>(out_.exits.size() - 1)});
  e_.u32(0);
  return_site(b, insn.next());
}

void Lowering::return_(const Insn& insn, std::span<const std::byte> bytes) {
  const x86::Shape& s = *insn.shape;
  uint16_t pop = 0;
  if (s.imm_size == 2) memcpy(&pop, &bytes[s.imm_offset], 2);
  save_rcx(insn);
  e_.bytes(0x8b, 0x0c, 0x24);  // mov ecx, [rsp]
  look_up();
  e_.bytes(0xe3, pop ? 7 : 5, 0x48, 0x89, 0x0c, 0x24);  // jrcxz miss; mov [rsp], rcx; ret
  if (pop) e_.bytes(0xc2, pop, pop >> 8);
  else e_.bytes(0xc3);
  e_.bytes(0xe9);
  out_.exits.push_back({Exit::Return, false, pop, 0, insn.pc});
  tails_.push_back({Tail::ReturnMiss, e_.offset(), &insn, {}, static_cast<uint32_t>(out_.exits.size() - 1)});
  e_.u32(0);
}

// lretq pops rip and cs; iretq rip, cs, rflags, rsp and ss. The runtime does that, when what is popped has been touched here, where it
// faults as it does natively.
void Lowering::far_return(const Insn& insn, std::span<const std::byte> bytes) {
  bool is_interrupt = bytes[insn.shape->length - 1u] == std::byte{0xcf};
  save_rcx(insn);
  e_.bytes(0x48, 0x8b, 0x4c, 0x24, is_interrupt ? 32 : 8);  // mov rcx, [rsp + …]
  e_.bytes(0x48, 0x8b, 0x0c, 0x24);                         // mov rcx, [rsp]
  e_.store_gs(x86::RCX, offsetof(rt::ThreadBlock, target));
  e_.bytes(0xb9);  // mov ecx, 0: this is no miss
  e_.u32(0);
  out_.exits.push_back({is_interrupt ? Exit::InterruptReturn : Exit::FarReturn, false, 0, 0, insn.pc});
  e_.store_gs_imm(offsetof(rt::ThreadBlock, exit_id), in_.first_exit + static_cast<uint32_t>(out_.exits.size() - 1));
  e_.jump_gs(offsetof(rt::ThreadBlock, enter_indirect));
}

// See rt/syscalls.cc. Behind the call rcx is the program's own next pc, where anybody looks.
void Lowering::system_call(BlockId b, const Insn& insn) {
  if (rax_ < 0 || rt::is_engine_call(rax_)) {
    mark(Mark::Exact, insn.pc);
    e_.bytes(0x48, 0x8d, 0x0d);  // lea rcx, [inline]
    e_.u32(8);
    e_.jump_gs(offsetof(rt::ThreadBlock, enter_syscall));
  }
  mark(Mark::Exact, insn.pc);
  e_.bytes(0x0f, 0x05);
  AppPc next = insn.next();
  BlockId to = f_.blocks[b].fallthrough;
  bool wants_rcx = to == no_block || is_live(to, x86::RCX);
  mark(Mark::Exact, next, rt::SetRcxToPc, e_.offset() + (wants_rcx ? 10 : 0));
  if (wants_rcx) e_.mov_imm64(x86::RCX, next.value);
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
    e_.patch_u32(displacement, static_cast<uint32_t>(pc - e_.pc_at(displacement + 4)));
    out_.exits.push_back({Exit::Direct, true, 0, displacement, target});
  } else {
    tails_.push_back({Tail::LinkStub, displacement, nullptr, target});
  }
}

void Lowering::jump_out(AppPc target, uint8_t opcode) {
  keep_in_line(e_, 1);
  e_.bytes(opcode);
  uint32_t displacement = e_.offset();
  e_.u32(0);
  link(displacement, target);
}

// mov dword [rsp], low half; and the upper half, unless the call has pushed the same.
void Lowering::store_return_address(AppPc address) {
  e_.bytes(0xc7, 0x04, 0x24);
  e_.u32(static_cast<uint32_t>(address.value));
  if (address.value >> 32 == in_.base.value >> 32 && (in_.base.value + in_.out.size()) >> 32 == in_.base.value >> 32)
    return;
  e_.bytes(0xc7, 0x44, 0x24, 0x04);
  e_.u32(static_cast<uint32_t>(address.value >> 32));
}

void write_stub(std::span<std::byte> out, uint32_t exit_id) {
  Emitter e(out, {});
  e.store_gs_imm(offsetof(rt::ThreadBlock, exit_id), exit_id);
  e.jump_gs(offsetof(rt::ThreadBlock, enter_link));
}

void write_far_jump(std::span<std::byte> out, CachePc to) {
  __atomic_store_n(reinterpret_cast<uint64_t*>(out.data() + 8), to.value, __ATOMIC_RELEASE);
  Emitter e(out, {});
  e.bytes(0xff, 0x25);  // jmp [rip + 2]
  e.u32(2);
}

void write_table_entry(std::span<std::byte> out, CachePc at, CachePc to) {
  Emitter e(out, at);
  e.load_gs(x86::RCX, gs_rcx);
  e.jump(to);
}

namespace {
void look_in_runtime(Emitter& e, CachePc record) {
  e.bytes(0x48, 0x8d, 0x0d);  // lea rcx, [record]
  e.u32(static_cast<uint32_t>(record - (e.pc() + 4)));
  e.jump_gs(offsetof(rt::ThreadBlock, enter_guard));
}
}  // namespace

CachePc write_guard(std::span<std::byte> out, CachePc at, CachePc record) {
  Emitter e(out, at);
  e.store_gs(x86::RCX, gs_rcx);
  CachePc through_table = e.pc();
  look_in_runtime(e, record);
  return through_table;
}

namespace {
// A guard's own registers: zmm30 and k7, which are put back, and rcx, which waits in its slot. It leaves the flags alone.
void keep_vector(Emitter& e) {
  e.bytes(0x65, 0x62, 0x61, 0xfe, 0x48, 0x7f, 0x34, 0x25);  // vmovdqu64 gs:[…], zmm30
  e.u32(offsetof(rt::ThreadBlock, zmm30));
  e.bytes(0x65, 0xc4, 0xe1, 0xf8, 0x91, 0x3c, 0x25);  // kmovq gs:[…], k7
  e.u32(offsetof(rt::ThreadBlock, k7));
}

void put_vector_back(Emitter& e) {
  e.bytes(0x65, 0x62, 0x61, 0xfe, 0x48, 0x6f, 0x34, 0x25);  // vmovdqu64 zmm30, gs:[…]
  e.u32(offsetof(rt::ThreadBlock, zmm30));
  e.bytes(0x65, 0xc4, 0xe1, 0xf8, 0x90, 0x3c, 0x25);  // kmovq k7, gs:[…]
  e.u32(offsetof(rt::ThreadBlock, k7));
}

// Sets rcx to 0 if both are the same, of `size` bytes up to 64.
void compare(Emitter& e, CachePc a, CachePc b, uint64_t size) {
  bool is_part = size < 64;
  if (is_part) {
    e.mov_imm64(x86::RCX, (uint64_t{1} << size) - 1);
    e.bytes(0xc4, 0xe1, 0xfb, 0x92, 0xf9);        // kmovq k7, rcx
    e.bytes(0x62, 0x61, 0x7f, 0xcf, 0x6f, 0x35);  // vmovdqu8 zmm30{k7}{z}, [rip + …]
  } else {
    e.bytes(0x62, 0x61, 0xfe, 0x48, 0x6f, 0x35);  // vmovdqu64 zmm30, [rip + …]
  }
  e.u32(static_cast<uint32_t>(a - (e.pc() + 4)));
  e.bytes(0x62, 0xf3, 0x0d, is_part ? 0x47 : 0x40, 0x3f, 0x3d);  // vpcmpneqb k7{k7}, zmm30, [rip + …]
  e.u32(static_cast<uint32_t>(b - (e.pc() + 5)));
  e.bytes(4);
  e.bytes(0xc4, 0xe1, 0xfb, 0x93, 0xcf);  // kmovq rcx, k7
}
}  // namespace

CachePc write_wide_guard(std::span<std::byte> out, CachePc at, CachePc record, CachePc to, std::span<const Compared> code) {
  Emitter e(out, at);
  std::vector<uint32_t> changed;  // displacements of jumps
  e.store_gs(x86::RCX, gs_rcx);
  CachePc through_table = e.pc();
  keep_vector(e);
  for (const Compared& c : code)
    for (uint64_t done = 0; done < c.size; done += 64) {
      // (The last 64 bytes, and some once more, rather than a part.)
      uint64_t begin = c.size >= 64 ? std::min(done, c.size - 64) : 0;
      compare(e, c.code + static_cast<int64_t>(begin), c.was + static_cast<int64_t>(begin), std::min<uint64_t>(c.size, 64));
      e.bytes(0xe3, 5, 0xe9);  // jrcxz behind; jmp changed
      changed.push_back(e.offset());
      e.u32(0);
    }
  put_vector_back(e);
  e.jump(to);
  for (uint32_t displacement : changed) e.patch_u32(displacement, e.offset() - displacement - 4);
  put_vector_back(e);
  look_in_runtime(e, record);
  return through_table;
}

void Lowering::emit_tail(const Tail& t) {
  auto comes_here = [&](uint32_t displacement) { e_.patch_u32(displacement, e_.offset() - displacement - 4); };
  auto leave = [&](uint32_t exit, uint32_t entry) {
    e_.store_gs_imm(offsetof(rt::ThreadBlock, exit_id), in_.first_exit + exit);
    e_.jump_gs(entry);
  };
  auto miss = [&] {
    e_.store_gs(x86::RCX, offsetof(rt::ThreadBlock, target));
    leave(t.number, offsetof(rt::ThreadBlock, enter_indirect));
  };
  if (t.from) comes_here(t.from);
  switch (t.kind) {
    case Tail::CallThunk:
      store_return_address(t.insn->next());
      jump_out(t.target, 0xe9);
      break;
    case Tail::IndirectCallThunk:
      store_return_address(t.insn->next());
      e_.bytes(0xe3, 2, 0xff, 0xe1);           // jrcxz miss; jmp rcx
      e_.bytes(0x48, 0x8d, 0x64, 0x24, 0x08);  // miss: lea rsp, [rsp + 8]: the operand is that before the push
      e_.load_gs(x86::RCX, gs_rcx);
      load_target(*t.insn, bytes_of(*t.insn), true);
      e_.bytes(0x48, 0x8d, 0x64, 0x24, 0xf8);  // lea rsp, [rsp - 8]
      miss();
      break;
    case Tail::IndirectMiss:
      e_.load_gs(x86::RCX, gs_rcx);
      load_target(*t.insn, bytes_of(*t.insn), true);
      miss();
      break;
    case Tail::ReturnMiss:
      e_.bytes(0x48, 0x8b, 0x0c, 0x24);  // mov rcx, [rsp]
      e_.bytes(0x48, 0x8d, 0xa4, 0x24);  // lea rsp, [rsp + 8 + pops]: the runtime need not know what missed
      e_.u32(8u + out_.exits[t.number].pops);
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
      e_.load_gs(x86::RCX, gs_rcx);
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
      else jump_out(t.target, 0xe9);
      break;
    }
  }
}

}  // namespace weir::instrument
