#include "instrument/cache_placement.h"

#include <array>

#include "instrument/lowering.h"
#include "x86/encoding.h"

namespace weir::instrument {

using x86::Insn;

namespace {

// Unless it is 0, to rcx.
void go_on(Emitter& e) {
  uint32_t miss = e.jrcxz();
  e.jmp(x86::RCX);
  e.comes_here_short(miss);
}

// In place of that which a call has pushed: its low half, and the upper one where it is another.
void store_return_address(Lowering& code, AppPc address) {
  Emitter& e = code.emitter();
  uint64_t begin = code.input().base.value, end = begin + code.input().out.size();
  e.mov32(at(x86::RSP), static_cast<uint32_t>(address.value));
  if (address.value >> 32 == begin >> 32 && end >> 32 == begin >> 32) return;
  e.mov32(at(x86::RSP, 4), static_cast<uint32_t>(address.value >> 32));
}

}  // namespace

// ---- What all indirect transfers and returns do ----

// rcx goes to its slot. From here on a fault finds it there, and begins the instruction again.
void CachePlacement::save_rcx(Lowering& code, const Insn& insn) const {
  uint32_t begin = code.emitter().offset();
  code.mark(Mark::Exact, insn.pc, 0, begin);
  code.emitter().mov(thread(gs_rcx), x86::RCX);
  code.mark(Mark::Middle, insn.pc, rt::RestoreRcx, begin);
}

// mov ecx, r/m32 (or rcx, r/m64) for the operand of an indirect jump or call.
void CachePlacement::load_target(Lowering& code, const Insn& insn, Bytes bytes, bool wide) const {
  Emitter& e = code.emitter();
  const x86::Shape& s = *insn.shape;
  uint8_t opcode = s.modrm_offset - 1, rex = 0;
  std::array<uint8_t, x86::max_insn_length> prefixes;
  size_t count = 0;
  bool is_far = code.has_far_operand(insn);
  if (is_far) e.movabs(x86::RCX, insn.target.value);
  for (uint8_t i = 0; i < opcode; i++) {
    auto byte = static_cast<uint8_t>(bytes[i]);
    if ((byte == 0x64 && !s.uses_gs) || byte == 0x67) prefixes[count++] = byte;
    if (i == opcode - 1 && (byte & 0xf0) == 0x40 && !is_far) rex = 0x40 | (byte & 3);
  }
  constexpr std::array at_rcx{std::byte{x86::RCX}};
  Bytes and_modrm = bytes.subspan(s.modrm_offset, s.length - s.modrm_offset);
  if (is_far) and_modrm = at_rcx;
  ProgramOperand operand{std::span(prefixes).first(count), rex, and_modrm};
  if (s.uses_gs) e.lea(x86::RCX, operand);  // the address first
  else wide ? e.mov(x86::RCX, operand) : e.mov32(x86::RCX, operand);
  if (s.rip_relative && !is_far) e.set_displacement(e.offset() - 4, insn.target - AppPc{e.pc().value});
  if (!s.uses_gs) return;
  e.mov(thread(gs_spill(0)), x86::RAX);
  e.mov(x86::RAX, thread(gs_app));
  if (!wide)
    code.mark(Mark::Middle, insn.pc, rt::RestoreRcx | rt::RestoreSpill0, code.result().marks.back().resume, x86::RAX);
  Memory there = indexed(x86::RAX, x86::RCX);
  wide ? e.mov(x86::RCX, there) : e.mov32(x86::RCX, there);
  e.mov(x86::RAX, thread(gs_spill(0)));
}

void CachePlacement::look_up(Lowering& code) const {
  Emitter& e = code.emitter();
  if (table_ <= INT32_MAX) return e.mov(x86::RCX, scaled(x86::RCX, 8, static_cast<int32_t>(table_)));
  e.mov(thread(gs_spill(0)), x86::RAX);
  e.movabs(x86::RAX, table_);
  e.mov(x86::RCX, indexed(x86::RAX, x86::RCX, 8));
  e.mov(x86::RAX, thread(gs_spill(0)));
}

// Its index.
uint32_t CachePlacement::add_exit(Lowering& code, Exit exit) const {
  code.result().exits.push_back(exit);
  return static_cast<uint32_t>(code.result().exits.size() - 1);
}

// ---- Transfers ----

void CachePlacement::call(Lowering& code, const Insn& insn) {
  code.mark(Mark::Run, insn.pc);
  code.put_off({Tail::CallThunk, code.emitter().call(), &insn, insn.target});
}

void CachePlacement::indirect_call(Lowering& code, const Insn& insn, Bytes bytes) {
  save_rcx(code, insn);
  load_target(code, insn, bytes, false);
  look_up(code);
  uint32_t exit = add_exit(code, {Exit::Call, false, 0, 0, insn.pc});
  code.put_off({Tail::IndirectCallThunk, code.emitter().call(), &insn, {}, exit});
}

void CachePlacement::indirect_jump(Lowering& code, const Insn& insn, Bytes bytes) {
  save_rcx(code, insn);
  load_target(code, insn, bytes, false);
  look_up(code);
  go_on(code.emitter());
  uint32_t exit = add_exit(code, {Exit::Jump, false, 0, 0, insn.pc});
  code.put_off({Tail::IndirectMiss, code.emitter().jmp(), &insn, {}, exit});
}

void CachePlacement::return_(Lowering& code, const Insn& insn, Bytes bytes) {
  const x86::Shape& s = *insn.shape;
  uint16_t pop = 0;
  if (s.imm_size == 2) memcpy(&pop, &bytes[s.imm_offset], 2);
  save_rcx(code, insn);
  return_from(code, insn.pc, pop);
}

// With the program's rcx in its slot.
void CachePlacement::return_from(Lowering& code, AppPc pc, uint16_t pop) {
  Emitter& e = code.emitter();
  e.mov32(x86::RCX, at(x86::RSP));
  look_up(code);
  uint32_t miss = e.jrcxz();
  e.mov(at(x86::RSP), x86::RCX);
  pop ? e.ret(pop) : e.ret();
  e.comes_here_short(miss);
  uint32_t exit = add_exit(code, {Exit::Return, false, pop, 0, pc});
  code.put_off({Tail::ReturnMiss, e.jmp(), nullptr, {}, exit});
}

// lretq pops rip and cs; iretq rip, cs, rflags, rsp and ss. The runtime does that, when what is popped has been touched here, where it
// faults as it does natively.
void CachePlacement::far_return(Lowering& code, const Insn& insn, Bytes bytes) {
  Emitter& e = code.emitter();
  bool is_interrupt = bytes[insn.shape->length - 1u] == std::byte{0xcf};
  save_rcx(code, insn);
  e.mov(x86::RCX, at(x86::RSP, is_interrupt ? 32 : 8));
  e.mov(x86::RCX, at(x86::RSP));
  e.mov(thread(offsetof(rt::ThreadBlock, target)), x86::RCX);
  e.mov32(x86::RCX, 0u);  // this is no miss
  uint32_t exit = add_exit(code, {is_interrupt ? Exit::InterruptReturn : Exit::FarReturn, false, 0, 0, insn.pc});
  leave(code, exit, offsetof(rt::ThreadBlock, enter_indirect));
}

// See rt/syscalls.cc. Behind the call rcx is the program's own next pc, where anybody looks.
void CachePlacement::system_call(Lowering& code, const Insn& insn, int64_t number, bool wants_rcx) {
  Emitter& e = code.emitter();
  if (number < 0 || rt::is_engine_call(number)) {
    code.mark(Mark::Exact, insn.pc);
    uint32_t in_line = e.lea_ahead(x86::RCX);
    enter(code, offsetof(rt::ThreadBlock, enter_syscall));
    e.comes_here(in_line);
  }
  code.mark(Mark::Exact, insn.pc);
  e.syscall();
  code.mark(Mark::Exact, insn.next(), rt::SetRcxToPc, e.offset() + (wants_rcx ? 10 : 0));
  if (wants_rcx) e.movabs(x86::RCX, insn.next().value);
}

// A link is patched while others run: its displacement must be within a cache line.
void CachePlacement::will_lead_out(Lowering& code, uint32_t ahead) {
  Emitter& e = code.emitter();
  while (e.pc_at(e.offset() + ahead).value % 64 > 60) e.nop();
}

CachePc CachePlacement::known(Lowering& code, AppPc target) const {
  if (target == code.input().function.entry) return code.emitter().pc_at(code.result().entry);
  CachePc pc = find_(target);
  return pc && Emitter::reaches(code.input().base, pc) ? pc : CachePc{};
}

// Now, or when the target has been translated.
void CachePlacement::leads_out(Lowering& code, uint32_t displacement, AppPc target) {
  Emitter& e = code.emitter();
  CachePc pc = known(code, target);
  if (!pc) return code.put_off({.kind = Tail::LinkStub, .from = displacement, .target = target, .version = version_});
  e.set_displacement(displacement, pc - e.pc_at(displacement + 4));
  add_exit(code, {Exit::Direct, true, 0, displacement, target, 0, version_});
}

void CachePlacement::go_to(Lowering& code, AppPc target, Version version) {
  Emitter& e = code.emitter();
  e.mov32(thread(offsetof(rt::ThreadBlock, code_version)), uint32_t{version});
  will_lead_out(code, 1);
  code.put_off({.kind = Tail::LinkStub, .from = e.jmp(), .target = target, .version = version});
}

// ---- Names ----

void CachePlacement::names(Lowering& code, uint32_t displacement, uint32_t end, AppPc target) {
  code.emitter().set_displacement(displacement, target - AppPc{code.emitter().pc_at(end).value});
}

void CachePlacement::enter(Lowering& code, uint32_t door) { code.emitter().jmp(thread(door)); }

// ---- Behind the function ----

void CachePlacement::leave(Lowering& code, uint32_t exit, uint32_t door) {
  code.emitter().mov32(thread(offsetof(rt::ThreadBlock, exit_id)), first_exit_ + exit);
  enter(code, door);
}

void CachePlacement::miss(Lowering& code, uint32_t exit) {
  code.emitter().mov(thread(offsetof(rt::ThreadBlock, target)), x86::RCX);
  leave(code, exit, offsetof(rt::ThreadBlock, enter_indirect));
}

void CachePlacement::tail(Lowering& code, const Tail& t) {
  Emitter& e = code.emitter();
  switch (t.kind) {
    case Tail::CallThunk:
      store_return_address(code, t.insn->next());
      code.jump_out(t.target);
      break;
    case Tail::IndirectCallThunk:
      store_return_address(code, t.insn->next());
      go_on(e);
      e.lea(x86::RSP, at(x86::RSP, 8));  // (the operand is that before the push)
      e.mov(x86::RCX, thread(gs_rcx));
      load_target(code, *t.insn, code.bytes_of(*t.insn), true);
      e.lea(x86::RSP, at(x86::RSP, -8));
      miss(code, t.number);
      break;
    case Tail::IndirectMiss:
      e.mov(x86::RCX, thread(gs_rcx));
      load_target(code, *t.insn, code.bytes_of(*t.insn), true);
      miss(code, t.number);
      break;
    case Tail::ReturnMiss:
      e.mov(x86::RCX, at(x86::RSP));
      e.lea(x86::RSP,
            at_wide(x86::RSP, 8 + code.result().exits[t.number].pops));  // (the runtime need not know what missed)
      miss(code, t.number);
      break;
    case Tail::Return: return_from(code, code.input().function.entry, 0); break;
    case Tail::LinkStub:
      leave(code, add_exit(code, {Exit::Direct, false, 0, t.from, t.target, e.offset(), t.version}),
            offsetof(rt::ThreadBlock, enter_link));
      break;
    default: CHECK(false);
  }
}

}  // namespace weir::instrument
