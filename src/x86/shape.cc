// What Zydis says of an instruction, turned into a Shape.
//
// `reads` and `writes` may say too much; `kills` must never, since a probe overwrites what is dead. So a write kills only
// when it surely happens and surely replaces the whole register: 32- and 64-bit writes of general registers, VEX and EVEX
// writes of vector registers, any write of a mask register. Intel SDM volume 2 is followed where Zydis' tables are coarse.
#include "x86/shape.h"

#include <cstring>

#include "x86/decoded.h"
#include "x86/make_operands.h"

namespace weir::x86 {
namespace {

uint8_t flags_of(ZydisAccessedFlagsMask mask) {
  return (mask & ZYDIS_CPUFLAG_CF ? CF : 0) | (mask & ZYDIS_CPUFLAG_PF ? PF : 0) | (mask & ZYDIS_CPUFLAG_AF ? AF : 0) |
         (mask & ZYDIS_CPUFLAG_ZF ? ZF : 0) | (mask & ZYDIS_CPUFLAG_SF ? SF : 0) | (mask & ZYDIS_CPUFLAG_OF ? OF : 0) |
         (mask & ZYDIS_CPUFLAG_DF ? DF : 0);
}

bool is_vector(ZydisRegisterClass c) {
  return c == ZYDIS_REGCLASS_XMM || c == ZYDIS_REGCLASS_YMM || c == ZYDIS_REGCLASS_ZMM;
}

bool is_gpr(ZydisRegisterClass c) {
  return c == ZYDIS_REGCLASS_GPR8 || c == ZYDIS_REGCLASS_GPR16 || c == ZYDIS_REGCLASS_GPR32 || c == ZYDIS_REGCLASS_GPR64;
}

// The register as a set of one; rip, segments, x87 and the like are not represented.
RegSet set_of(ZydisRegister reg) {
  ZydisRegisterClass c = ZydisRegisterGetClass(reg);
  RegSet set;
  if (is_gpr(c)) {
    ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    set.gpr = 1 << ZydisRegisterGetId(whole);
  } else if (is_vector(c)) {
    set.vec = 1u << ZydisRegisterGetId(reg);
  } else if (c == ZYDIS_REGCLASS_MASK) {
    set.mask = 1 << ZydisRegisterGetId(reg);
  }
  return set;
}

// jcc, as against jrcxz and loop.
bool is_jcc(const ZydisDecodedInstruction& z) {
  return z.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY &&
         ((z.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && (z.opcode & 0xf0) == 0x70) ||
          (z.opcode_map == ZYDIS_OPCODE_MAP_0F && (z.opcode & 0xf0) == 0x80));
}

// By mnemonic: among Zydis' categories of branches are also xtest and xabort.
Kind kind_of(const Decoded& d) {
  bool pops_wide =
      d.insn.mnemonic == ZYDIS_MNEMONIC_IRETQ || (d.insn.mnemonic == ZYDIS_MNEMONIC_RET && d.insn.opcode == 0xcb);
  if (pops_wide && d.insn.raw.rex.W) return Kind::FarReturn;
  if (d.insn.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR) return Kind::Far;
  if (is_jcc(d.insn)) return Kind::Branch;
  bool direct = d.operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
  switch (d.insn.mnemonic) {
    case ZYDIS_MNEMONIC_JMP: return direct ? Kind::Jump : Kind::JumpIndirect;
    case ZYDIS_MNEMONIC_CALL: return direct ? Kind::Call : Kind::CallIndirect;
    case ZYDIS_MNEMONIC_RET: return Kind::Return;
    case ZYDIS_MNEMONIC_JECXZ:
    case ZYDIS_MNEMONIC_JRCXZ:
    case ZYDIS_MNEMONIC_LOOP:
    case ZYDIS_MNEMONIC_LOOPE:
    case ZYDIS_MNEMONIC_LOOPNE: return Kind::Branch;
    case ZYDIS_MNEMONIC_SYSCALL: return Kind::Syscall;
    case ZYDIS_MNEMONIC_INT:
    case ZYDIS_MNEMONIC_INT1:
    case ZYDIS_MNEMONIC_INT3:
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_HLT: return Kind::Trap;
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
    case ZYDIS_MNEMONIC_SYSENTER:
    case ZYDIS_MNEMONIC_SYSEXIT:
    case ZYDIS_MNEMONIC_SYSRET:
    case ZYDIS_MNEMONIC_UIRET:
    // xbegin goes on at its target when the transaction aborts, which any instruction up to xend can cause: no kind of
    // branch has that meaning, so it is reported and not translated.
    case ZYDIS_MNEMONIC_XBEGIN: return Kind::Far;
    default: return Kind::Plain;
  }
}

// Writes that may leave the old value, or a part of it: Zydis calls some of them unconditional. rdssp is a nop where shadow
// stacks are off; sldt, str and smsw are emulated by the kernel, with 16 bits.
bool may_not_write(const Decoded& d) {
  switch (d.insn.mnemonic) {
    case ZYDIS_MNEMONIC_BSF:
    case ZYDIS_MNEMONIC_BSR:
    case ZYDIS_MNEMONIC_LAR:
    case ZYDIS_MNEMONIC_LSL:
    case ZYDIS_MNEMONIC_RDSSPD:
    case ZYDIS_MNEMONIC_RDSSPQ:
    case ZYDIS_MNEMONIC_SLDT:
    case ZYDIS_MNEMONIC_SMSW:
    case ZYDIS_MNEMONIC_STR: return true;
    default: return false;
  }
}

// xor r,r and sub r,r do not depend on r.
bool is_zero_idiom(const Decoded& d) {
  bool candidate = d.insn.mnemonic == ZYDIS_MNEMONIC_XOR || d.insn.mnemonic == ZYDIS_MNEMONIC_SUB;
  return candidate && d.operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
         d.operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER && d.operands[0].reg.value == d.operands[1].reg.value &&
         d.operands[0].size >= 32;
}

// Elements that the mask leaves out keep their old value.
bool merges(const Decoded& d) {
  ZydisMaskMode mode = d.insn.avx.mask.mode;
  return mode == ZYDIS_MASK_MODE_MERGING || mode == ZYDIS_MASK_MODE_CONTROL ||
         d.insn.meta.category == ZYDIS_CATEGORY_GATHER || d.insn.meta.category == ZYDIS_CATEGORY_AVX2GATHER;
}

void add_register_write(Shape& s, const Decoded& d, const ZydisDecodedOperand& op) {
  RegSet set = set_of(op.reg.value);
  s.writes = s.writes | set;
  bool vector = is_vector(ZydisRegisterGetClass(op.reg.value));
  // The legacy encodings leave the upper part of a vector register as it was.
  bool whole = vector ? d.insn.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY && !merges(d)
                      : set.mask != 0 || ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, op.reg.value) >= 32;
  if (vector && merges(d)) s.reads = s.reads | set;
  if (d.insn.meta.category == ZYDIS_CATEGORY_CMOV) s.reads = s.reads | set;
  if (whole && (op.actions & ZYDIS_OPERAND_ACTION_WRITE) && !s.rep && !may_not_write(d)) s.kills = s.kills | set;
}

void add_register(Shape& s, const Decoded& d, const ZydisDecodedOperand& op) {
  ZydisRegister reg = op.reg.value;
  s.uses_fs |= reg == ZYDIS_REGISTER_FS;
  bool loads_gs = reg == ZYDIS_REGISTER_GS && op.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
  if (loads_gs) s.uses_gs = true, s.kind = Kind::Far;
  bool no_mask = op.encoding == ZYDIS_OPERAND_ENCODING_MASK && reg == ZYDIS_REGISTER_K0;
  if (no_mask) return;
  if (op.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) add_register_write(s, d, op);
  if (!(op.actions & ZYDIS_OPERAND_ACTION_MASK_READ) || is_zero_idiom(d)) return;
  s.reads = s.reads | set_of(reg);
  // Named by the immediate, which is not part of the shape.
  if (op.encoding == ZYDIS_OPERAND_ENCODING_IS4) s.reads.vec |= 0xffff;
  // A group of four registers, named by any of them.
  if (op.attributes & ZYDIS_OATTRIB_IS_MULTISOURCE4) s.reads.vec |= 0xfu << (ZydisRegisterGetId(reg) & ~3);
}

// A %gs operand that an engine cannot write in another way: one that is implied, or 32-bit addresses.
bool is_odd_operand(const Decoded& d, const ZydisDecodedOperand& op) {
  bool is_absolute = d.insn.mnemonic == ZYDIS_MNEMONIC_MOV;  // movabs, if it has no ModRM
  return op.visibility != ZYDIS_OPERAND_VISIBILITY_EXPLICIT ||
         !(d.insn.attributes & ZYDIS_ATTRIB_HAS_MODRM || is_absolute) || d.insn.address_width != 64;
}

void add_memory(Shape& s, const Decoded& d, const ZydisDecodedOperand& op) {
  s.reads = s.reads | set_of(op.mem.base) | set_of(op.mem.index);
  // rsi and rdi move on. Zydis says so of some string instructions only.
  bool string = d.insn.meta.category == ZYDIS_CATEGORY_STRINGOP || d.insn.meta.category == ZYDIS_CATEGORY_IOSTRINGOP;
  if (string) s.writes = s.writes | set_of(op.mem.base);
  s.rip_relative |= op.mem.base == ZYDIS_REGISTER_RIP || op.mem.base == ZYDIS_REGISTER_EIP;
  s.eip_relative |= op.mem.base == ZYDIS_REGISTER_EIP;
  if (op.mem.type == ZYDIS_MEMOP_TYPE_AGEN) return;
  s.uses_fs |= op.mem.segment == ZYDIS_REGISTER_FS;
  if (op.mem.segment == ZYDIS_REGISTER_GS) {
    s.uses_gs = true;
    if (s.kind == Kind::Plain && d.insn.mnemonic != ZYDIS_MNEMONIC_NOP && is_odd_operand(d, op)) s.kind = Kind::Far;
  }
  s.reads_memory |= (op.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
  s.writes_memory |= (op.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
}

void add_flags(Shape& s, const Decoded& d) {
  const ZydisAccessedFlags* f = d.insn.cpu_flags;
  if (!f) return;
  uint8_t sure = flags_of(f->modified | f->set_0 | f->set_1);
  uint8_t undefined = flags_of(f->undefined);
  s.reads.flags |= flags_of(f->tested);
  s.writes.flags |= sure | undefined;
  // A shift by 0 changes no flag.
  bool shifts = (d.insn.meta.category == ZYDIS_CATEGORY_SHIFT || d.insn.meta.category == ZYDIS_CATEGORY_ROTATE);
  if (s.rep || shifts) return;
  // What is undefined some processor leaves unchanged (bit tests, multiplications, …), but after and, or, xor and test.
  s.kills.flags |= d.insn.meta.category == ZYDIS_CATEGORY_LOGICAL ? sure | undefined : sure;
}

// Instructions that touch registers that no operand names, or more than Zydis says.
void add_implicit_registers(Shape& s, const Decoded& d) {
  switch (d.insn.mnemonic) {
    case ZYDIS_MNEMONIC_SYSCALL:  // the kernel may read any register; it clobbers rcx and r11
      s.reads = s.reads | RegSet{0xffff, AllFlags, 0, 0};
      s.writes = RegSet{1 << RAX | 1 << RCX | 1 << R11, 0, 0, 0};
      s.kills = RegSet{1 << RCX | 1 << R11, 0, 0, 0};
      break;
    case ZYDIS_MNEMONIC_VMCALL:
    case ZYDIS_MNEMONIC_VMMCALL: s.reads = s.writes = RegSet::all(); break;  // whatever the hypervisor wants
    case ZYDIS_MNEMONIC_PUSHF:
    case ZYDIS_MNEMONIC_PUSHFD:
    case ZYDIS_MNEMONIC_PUSHFQ: s.reads.flags = AllFlags; break;
    case ZYDIS_MNEMONIC_POPF:
    case ZYDIS_MNEMONIC_POPFD:
    case ZYDIS_MNEMONIC_POPFQ: s.writes.flags = s.kills.flags = AllFlags; break;
    case ZYDIS_MNEMONIC_PAUSE:  // with REX.B it is xchg r8, rax
      if (d.insn.raw.rex.B) s.reads.gpr = s.writes.gpr = 1 << RAX | 1 << R8;
      break;
    case ZYDIS_MNEMONIC_VPTEST:  // Zydis knows of CF and ZF; the others become 0
    case ZYDIS_MNEMONIC_VTESTPS:
    case ZYDIS_MNEMONIC_VTESTPD: s.writes.flags = s.kills.flags = AllFlags & ~DF; break;
    case ZYDIS_MNEMONIC_XLAT: s.reads.gpr |= 1 << RAX; break;  // al, the index
    case ZYDIS_MNEMONIC_VP2INTERSECTD:                         // a pair of mask registers, named by either
    case ZYDIS_MNEMONIC_VP2INTERSECTQ: s.writes.mask |= s.writes.mask >> 1 | (s.writes.mask & 0x55) << 1; break;
    case ZYDIS_MNEMONIC_RDFSBASE:
    case ZYDIS_MNEMONIC_WRFSBASE: s.uses_fs = true; break;
    case ZYDIS_MNEMONIC_RDGSBASE:
    case ZYDIS_MNEMONIC_WRGSBASE:
    case ZYDIS_MNEMONIC_SWAPGS: s.uses_gs = true; break;
    default: break;
  }
}

// Instructions that save, restore or clear many vector registers at once.
void add_extended_state(Shape& s, const Decoded& d) {
  constexpr RegSet vectors = {0, 0, 0xff, ~0u};
  constexpr RegSet first_16_vectors = {0, 0, 0, 0xffff};
  s.xstate = true;
  switch (d.insn.mnemonic) {
    case ZYDIS_MNEMONIC_FXSAVE:
    case ZYDIS_MNEMONIC_FXSAVE64:
    case ZYDIS_MNEMONIC_XSAVE:
    case ZYDIS_MNEMONIC_XSAVE64:
    case ZYDIS_MNEMONIC_XSAVEC:
    case ZYDIS_MNEMONIC_XSAVEC64:
    case ZYDIS_MNEMONIC_XSAVEOPT:
    case ZYDIS_MNEMONIC_XSAVEOPT64:
    case ZYDIS_MNEMONIC_XSAVES:
    case ZYDIS_MNEMONIC_XSAVES64: s.reads = s.reads | vectors; break;
    case ZYDIS_MNEMONIC_FXRSTOR:
    case ZYDIS_MNEMONIC_FXRSTOR64:
    case ZYDIS_MNEMONIC_XRSTOR:
    case ZYDIS_MNEMONIC_XRSTOR64:
    case ZYDIS_MNEMONIC_XRSTORS:
    case ZYDIS_MNEMONIC_XRSTORS64: s.writes = s.writes | vectors; break;
    case ZYDIS_MNEMONIC_VZEROUPPER: s.writes = first_16_vectors; break;
    case ZYDIS_MNEMONIC_VZEROALL: s.writes = s.kills = first_16_vectors; break;
    default: s.xstate = false;
  }
}

void add_registers(Shape& s, const Decoded& d) {
  for (const ZydisDecodedOperand& op : d.all()) {
    if (op.type == ZYDIS_OPERAND_TYPE_REGISTER) add_register(s, d, op);
    if (op.type == ZYDIS_OPERAND_TYPE_MEMORY) add_memory(s, d, op);
  }
  add_flags(s, d);
  add_implicit_registers(s, d);
  add_extended_state(s, d);
  // A nop's operands are padding.
  if (d.insn.mnemonic == ZYDIS_MNEMONIC_NOP)
    s.reads = s.writes = s.kills = {}, s.uses_gs = s.reads_memory = s.writes_memory = false;
  if (s.rep) s.reads.gpr |= 1 << RCX, s.writes.gpr |= 1 << RCX;
  // Whoever handles it, kernel or signal handler, sees and may change everything.
  if (s.kind == Kind::Trap || s.kind == Kind::FarReturn || s.kind == Kind::Far)
    s.reads = s.writes = RegSet::all(), s.kills = {};
}

// The bytes of the immediate where Zydis does not know the opcode, as all opcodes of a map have it; -1: not decided.
int immediate_size(const Layout& l, uint8_t opcode) {
  if (l.encoding == Encoding::Xop) return l.map == 8 ? 1 : l.map == 9 ? 0 : l.map == 10 ? 4 : -1;
  if (l.map == 2) return 0;
  if (l.map == 3) return 1;
  if (l.encoding == Encoding::Legacy) return -1;
  bool shuffle_or_compare = (opcode >= 0x70 && opcode <= 0x73) || opcode == 0xc2 || (opcode >= 0xc4 && opcode <= 0xc6);
  if (l.map == 1) return shuffle_or_compare ? 1 : 0;
  return l.encoding == Encoding::Evex && (l.map == 5 || l.map == 6) ? 0 : -1;
}

Shape shape_by_rules(const uint8_t* bytes, const Layout& l) {
  Shape s = unknown_shape();
  // So many prefixes that there is no instruction, and no byte to look at.
  if (l.opcode_offset >= max_insn_length || l.modrm_offset >= max_insn_length) return s;
  bool address_size = false;
  for (int i = 0; i < l.opcode_offset; ++i) {
    s.uses_fs |= bytes[i] == 0x64;
    s.uses_gs |= bytes[i] == 0x65;
    address_size |= bytes[i] == 0x67;
  }
  int immediate = immediate_size(l, bytes[l.opcode_offset]);
  // With %gs it cannot be copied, and what it reads is not known.
  if (immediate < 0 || l.modrm_offset == 0 || s.uses_gs) return s;
  int displacement = displacement_size(bytes + l.modrm_offset);
  int length = l.shape_end + displacement + immediate;
  if (length > max_insn_length) return s;
  s.length = length;
  s.modrm_offset = l.modrm_offset;
  s.disp_size = displacement;
  s.disp_offset = displacement ? l.shape_end : 0;
  s.imm_size = immediate;
  s.imm_offset = immediate ? l.shape_end + displacement : 0;
  s.rip_relative = (bytes[l.modrm_offset] & 0xc7) == 5;
  s.eip_relative = s.rip_relative && address_size;
  s.reads_memory = s.writes_memory = bytes[l.modrm_offset] < 0xc0;
  return s;
}

}  // namespace

Shape unknown_shape() {
  Shape s;
  s.known = false;
  s.reads = s.writes = RegSet::all();
  return s;
}

bool decode_with_zydis(const uint8_t* bytes, const Layout& layout, Decoded& d) {
  static const ZydisDecoder decoder = [] {
    ZydisDecoder z;
    ZydisDecoderInit(&z, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    return z;
  }();
  uint8_t shown[max_insn_length + 1] = {};
  memcpy(shown, bytes, max_insn_length);
  bool has_room = layout.encoding == Encoding::Evex && layout.shape_end < max_insn_length;
  if (has_room && displacement_size(shown + layout.modrm_offset) == 1) shown[layout.shape_end] = 1;
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, shown, sizeof shown, &d.insn, d.operands))) return false;
  // Branches of the Xeon Phi's predecessor, without a ModRM where all of VEX has one: invalid on any other processor.
  return d.insn.mnemonic != ZYDIS_MNEMONIC_JKZD && d.insn.mnemonic != ZYDIS_MNEMONIC_JKNZD;
}

MadeShape make_shape(const uint8_t* bytes, const Layout& layout) {
  Decoded d;
  if (!decode_with_zydis(bytes, layout, d)) return {shape_by_rules(bytes, layout), {}};
  Shape s;
  s.length = d.insn.length;
  s.kind = kind_of(d);
  s.disp_offset = d.insn.raw.disp.offset;
  s.disp_size = d.insn.raw.disp.size / 8;
  s.imm_offset = d.insn.raw.imm[0].offset;
  s.imm_size = d.insn.raw.imm[0].size / 8;
  s.modrm_offset = d.insn.attributes & ZYDIS_ATTRIB_HAS_MODRM ? d.insn.raw.modrm.offset : 0;
  s.rep = d.insn.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
  if (s.kind == Kind::Branch && is_jcc(d.insn)) s.condition = d.insn.opcode & 15;
  s.short_only = s.kind == Kind::Branch && !is_jcc(d.insn);
  add_registers(s, d);
  return {s, make_operands(d)};
}

}  // namespace weir::x86
