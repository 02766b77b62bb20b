// What Zydis says of an instruction's memory, turned into operands.
//
// Zydis tells most of it. It does not tell where below rsp a push writes, what enter does with its levels, which element a mask
// bit decides on, the index of xlat, and what registers without brackets lead to (clzero, enqcmd). Where it says too little,
// Intel SDM volume 2 and AMD APM volumes 3 to 5 are followed; tests/unit/operands_fault_test.cc asks the processor.
#include "x86/make_operands.h"

#include <algorithm>

namespace weir::x86 {
namespace {

bool is_memory(const ZydisDecodedOperand& op) {
  return op.type == ZYDIS_OPERAND_TYPE_MEMORY &&
         (op.mem.type == ZYDIS_MEMOP_TYPE_MEM || op.mem.type == ZYDIS_MEMOP_TYPE_VSIB);
}

uint8_t gpr_number(ZydisRegister reg) {
  ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
  return static_cast<uint8_t>(ZydisRegisterGetId(whole));
}

bool is_narrow(ZydisRegister reg) { return ZydisRegisterGetClass(reg) == ZYDIS_REGCLASS_GPR32; }

bool is_vector(ZydisRegister reg) {
  ZydisRegisterClass c = ZydisRegisterGetClass(reg);
  return c == ZYDIS_REGCLASS_XMM || c == ZYDIS_REGCLASS_YMM || c == ZYDIS_REGCLASS_ZMM;
}

Access access_of(ZydisOperandActions actions) {
  int reads = actions & ZYDIS_OPERAND_ACTION_MASK_READ ? 1 : 0;
  int writes = actions & ZYDIS_OPERAND_ACTION_MASK_WRITE ? 2 : 0;
  return static_cast<Access>(reads | writes);
}

// [disp32 + index*scale]. Zydis 4.0 takes it for [r13d + index*scale], if there are an address-size prefix and REX.B.
bool has_no_base(const Decoded& d) {
  const auto& raw = d.insn.raw;
  return d.insn.attributes & ZYDIS_ATTRIB_HAS_SIB && raw.modrm.mod == 0 && raw.sib.base == 5;
}

// Address, size and direction, as Zydis has them.
MemoryOperand basic_operand(const Decoded& d, const ZydisDecodedOperand& op) {
  MemoryOperand o;
  const auto& m = op.mem;
  bool is_explicit = op.visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT;
  bool has_base = m.base != ZYDIS_REGISTER_NONE && !(is_explicit && has_no_base(d));
  o.is_rip_relative = m.base == ZYDIS_REGISTER_RIP || m.base == ZYDIS_REGISTER_EIP;
  if (has_base && !o.is_rip_relative) o.base = gpr_number(m.base);
  if (is_vector(m.index)) o.index = static_cast<uint8_t>(ZydisRegisterGetId(m.index));
  else if (m.index != ZYDIS_REGISTER_NONE) o.index = gpr_number(m.index);
  if (o.index != no_register && m.scale) o.scale = m.scale;
  o.segment = m.segment == ZYDIS_REGISTER_FS ? Segment::Fs : m.segment == ZYDIS_REGISTER_GS ? Segment::Gs : Segment::None;
  o.is_implicit = !is_explicit;
  // The stack has addresses of 64 bits, whatever the prefix says.
  o.wraps_at_32_bits = o.is_implicit ? is_narrow(m.base) : d.insn.address_width == 32;
  bool is_scaled = d.insn.raw.disp.size == 8 && (d.insn.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX ||
                                                 d.insn.encoding == ZYDIS_INSTRUCTION_ENCODING_MVEX);
  if (is_explicit && d.insn.raw.disp.size) o.displacement_scale = is_scaled ? static_cast<uint8_t>(m.disp.value) : 1;
  if (is_explicit && d.insn.raw.disp.size == 64) o.displacement_scale = MemoryOperand::wide;
  o.size = op.size / 8;
  o.access = access_of(op.actions);
  return o;
}

// Gathers and scatters: 0F38 90-93, A0-A3, and their prefetches, C6 and C7. Indices have 8 bytes where the opcode is odd.
bool has_wide_indices(const Decoded& d) { return d.insn.opcode & 1; }
bool is_gather_prefetch(const Decoded& d) { return d.insn.opcode >= 0xc6; }

bool is_packed(ZydisMnemonic m) {
  switch (m) {
    case ZYDIS_MNEMONIC_VCOMPRESSPD:
    case ZYDIS_MNEMONIC_VCOMPRESSPS:
    case ZYDIS_MNEMONIC_VPCOMPRESSB:
    case ZYDIS_MNEMONIC_VPCOMPRESSW:
    case ZYDIS_MNEMONIC_VPCOMPRESSD:
    case ZYDIS_MNEMONIC_VPCOMPRESSQ:
    case ZYDIS_MNEMONIC_VEXPANDPD:
    case ZYDIS_MNEMONIC_VEXPANDPS:
    case ZYDIS_MNEMONIC_VPEXPANDB:
    case ZYDIS_MNEMONIC_VPEXPANDW:
    case ZYDIS_MNEMONIC_VPEXPANDD:
    case ZYDIS_MNEMONIC_VPEXPANDQ: return true;
    default: return false;
  }
}

// Reads the whole operand, whatever the mask says ("no fault suppression").
bool reads_all(const Decoded& d) {
  switch (d.insn.meta.exception_class) {
    case ZYDIS_EXCEPTION_CLASS_E1NF:
    case ZYDIS_EXCEPTION_CLASS_E2NF:
    case ZYDIS_EXCEPTION_CLASS_E3NF:
    case ZYDIS_EXCEPTION_CLASS_E4NF:
    case ZYDIS_EXCEPTION_CLASS_E5NF:
    case ZYDIS_EXCEPTION_CLASS_E6NF:
    case ZYDIS_EXCEPTION_CLASS_E9NF:
    case ZYDIS_EXCEPTION_CLASS_E10NF:
    case ZYDIS_EXCEPTION_CLASS_E11NF: return true;
    default: break;
  }
  switch (d.insn.meta.category) {
    case ZYDIS_CATEGORY_AVX512_4FMAPS:
    case ZYDIS_CATEGORY_AVX512_4VNNIW: return true;
    default: break;
  }
  switch (d.insn.mnemonic) {  // Zydis has them as E4
    case ZYDIS_MNEMONIC_VGF2P8AFFINEQB:
    case ZYDIS_MNEMONIC_VGF2P8AFFINEINVQB:
    case ZYDIS_MNEMONIC_VDBPSADBW:
    case ZYDIS_MNEMONIC_VCVTNE2PS2BF16: return true;
    default: return false;
  }
}

// To how many elements a broadcast goes.
uint8_t broadcast_count(ZydisBroadcastMode mode) {
  switch (mode) {
    case ZYDIS_BROADCAST_MODE_1_TO_2: return 2;
    case ZYDIS_BROADCAST_MODE_1_TO_4:
    case ZYDIS_BROADCAST_MODE_2_TO_4: return 4;
    case ZYDIS_BROADCAST_MODE_1_TO_8:
    case ZYDIS_BROADCAST_MODE_2_TO_8:
    case ZYDIS_BROADCAST_MODE_4_TO_8: return 8;
    case ZYDIS_BROADCAST_MODE_1_TO_16:
    case ZYDIS_BROADCAST_MODE_2_TO_16:
    case ZYDIS_BROADCAST_MODE_4_TO_16:
    case ZYDIS_BROADCAST_MODE_8_TO_16: return 16;
    case ZYDIS_BROADCAST_MODE_1_TO_32: return 32;
    case ZYDIS_BROADCAST_MODE_1_TO_64: return 64;
    default: return 0;
  }
}

bool has_k_mask(const Decoded& d) {
  return d.insn.avx.mask.mode > ZYDIS_MASK_MODE_DISABLED && d.insn.avx.mask.reg != ZYDIS_REGISTER_K0 &&
         d.insn.avx.mask.reg != ZYDIS_REGISTER_NONE;
}

void set_k_mask(MemoryOperand& o, const Decoded& d) {
  o.mask_in = MaskIn::K;
  o.mask = static_cast<uint8_t>(ZydisRegisterGetId(d.insn.avx.mask.reg));
}

// The register in VEX.vvvv, or of the given encoding.
void set_vector_mask(MemoryOperand& o, const Decoded& d, ZydisOperandEncoding encoding) {
  for (const ZydisDecodedOperand& op : d.all())
    if (op.type == ZYDIS_OPERAND_TYPE_REGISTER && op.encoding == encoding) {
      o.mask_in = is_vector(op.reg.value) ? MaskIn::Vector : MaskIn::Mmx;
      o.mask = static_cast<uint8_t>(ZydisRegisterGetId(op.reg.value));
    }
}

void make_masked(MemoryOperand& o, uint32_t element) {
  o.extent = Extent::Masked;
  o.element = static_cast<uint8_t>(element);
  o.mask_bits = static_cast<uint8_t>(o.size / element);
}

void add_indices(MemoryOperand& o, const Decoded& d) {
  o.extent = Extent::Indexed;
  o.element = static_cast<uint8_t>(o.size);
  o.index_size = has_wide_indices(d) ? 8 : 4;
  o.mask_bits = static_cast<uint8_t>(d.insn.avx.vector_length / 8 / std::max(o.element, o.index_size));
  o.size = o.element * o.mask_bits;
  if (has_k_mask(d)) set_k_mask(o, d);
  else set_vector_mask(o, d, ZYDIS_OPERAND_ENCODING_NDSNDD);
  if (is_gather_prefetch(d)) o.access = Access::None;
}

// An operand of EVEX with a mask register. A mask bit stands for an element of the result, which has the same number of
// elements as the memory, or is made of fewer that are broadcast.
void add_k_mask(MemoryOperand& o, const Decoded& d, const ZydisDecodedOperand& op) {
  bool is_whole = !writes(o.access) && reads_all(d);
  if (is_whole || op.element_count == 0) return;
  set_k_mask(o, d);
  uint32_t elements = op.element_count;
  const ZydisDecodedOperand& result = d.operands[0];
  bool is_vector_result = result.type == ZYDIS_OPERAND_TYPE_REGISTER && is_vector(result.reg.value);
  if (uint8_t count = broadcast_count(d.insn.avx.broadcast.mode)) {
    o.mask_bits = count;
  } else {
    if (is_vector_result) elements = std::min<uint32_t>(elements, result.element_count);
    o.mask_bits = static_cast<uint8_t>(elements);
  }
  o.element = static_cast<uint8_t>(o.size / elements);
  o.extent = is_packed(d.insn.mnemonic) ? Extent::Packed : Extent::Masked;
}

// The register of a bit string: bt [mem], reg.
void add_bit_offset(MemoryOperand& o, const Decoded& d) {
  const ZydisDecodedOperand& bit = d.operands[1];
  if (bit.type != ZYDIS_OPERAND_TYPE_REGISTER) return;
  o.extent = Extent::BitString;
  o.bit_offset = gpr_number(bit.reg.value);
}

bool is_repeated(const Decoded& d) {
  return d.insn.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
}

// Memory that is named and not accessed: the line that the address is in.
void make_hint(MemoryOperand& o) {
  o.extent = Extent::Line;
  o.access = Access::None;
  o.size = 64;
}

void refine(MemoryOperand& o, const Decoded& d, const ZydisDecodedOperand& op) {
  bool pushes = o.is_implicit && o.base == RSP && writes(o.access) && d.insn.mnemonic != ZYDIS_MNEMONIC_MOVDIR64B;
  if (pushes) o.displacement = -int64_t{o.size};
  if (op.mem.type == ZYDIS_MEMOP_TYPE_VSIB) return add_indices(o, d);
  if (has_k_mask(d)) add_k_mask(o, d, op);
  switch (d.insn.meta.category) {
    case ZYDIS_CATEGORY_STRINGOP:
    case ZYDIS_CATEGORY_IOSTRINGOP:
      if (is_repeated(d)) o.extent = Extent::Repeated;
      return;
    case ZYDIS_CATEGORY_XSAVE:
    case ZYDIS_CATEGORY_XSAVEOPT: o.extent = Extent::State, o.size = 0; return;
    case ZYDIS_CATEGORY_PREFETCH:
    case ZYDIS_CATEGORY_PREFETCHWT1:
    case ZYDIS_CATEGORY_CLDEMOTE:
    case ZYDIS_CATEGORY_CLFLUSHOPT:
    case ZYDIS_CATEGORY_CLWB: return make_hint(o);
    default: break;
  }
  switch (d.insn.mnemonic) {
    case ZYDIS_MNEMONIC_CLFLUSH:
    case ZYDIS_MNEMONIC_INVLPG: return make_hint(o);
    case ZYDIS_MNEMONIC_BT:
    case ZYDIS_MNEMONIC_BTC:
    case ZYDIS_MNEMONIC_BTR:
    case ZYDIS_MNEMONIC_BTS: return add_bit_offset(o, d);
    case ZYDIS_MNEMONIC_POP:  // it addresses behind the increment
      if (!o.is_implicit && o.base == RSP) o.displacement = o.size;
      return;
    case ZYDIS_MNEMONIC_XLAT: o.index = RAX, o.index_size = 1; return;
    case ZYDIS_MNEMONIC_FXSAVE:
    case ZYDIS_MNEMONIC_FXSAVE64:
    case ZYDIS_MNEMONIC_FXRSTOR:
    case ZYDIS_MNEMONIC_FXRSTOR64: o.extent = Extent::State; return;
    case ZYDIS_MNEMONIC_VMASKMOVPS:
    case ZYDIS_MNEMONIC_VPMASKMOVD: make_masked(o, 4); return set_vector_mask(o, d, ZYDIS_OPERAND_ENCODING_NDSNDD);
    case ZYDIS_MNEMONIC_VMASKMOVPD:
    case ZYDIS_MNEMONIC_VPMASKMOVQ: make_masked(o, 8); return set_vector_mask(o, d, ZYDIS_OPERAND_ENCODING_NDSNDD);
    case ZYDIS_MNEMONIC_MASKMOVQ:
    case ZYDIS_MNEMONIC_MASKMOVDQU:
    case ZYDIS_MNEMONIC_VMASKMOVDQU: make_masked(o, 1); return set_vector_mask(o, d, ZYDIS_OPERAND_ENCODING_MODRM_RM);
    case ZYDIS_MNEMONIC_TILELOADD:
    case ZYDIS_MNEMONIC_TILELOADDT1:
    case ZYDIS_MNEMONIC_TILESTORED: o.extent = Extent::Rows; return;
    default: return;
  }
}

// What only looks as if it had a memory operand. MPX is nops: no processor has it any more, and Linux does not switch it on.
bool names_no_memory(const Decoded& d) {
  ZydisMnemonic m = d.insn.mnemonic;
  return m == ZYDIS_MNEMONIC_NOP || m == ZYDIS_MNEMONIC_UD0 || m == ZYDIS_MNEMONIC_UD1 || m == ZYDIS_MNEMONIC_UD2 ||
         d.insn.meta.category == ZYDIS_CATEGORY_MPX;
}

MemoryOperand implied(uint8_t base, Access access, uint32_t size) {
  MemoryOperand o;
  o.base = base;
  o.access = access;
  o.size = size;
  o.is_implicit = true;
  return o;
}

// Through the first register operand, or rax, as an address.
MemoryOperand by_register(const Decoded& d, Access access, uint32_t size) {
  const ZydisDecodedOperand& first = d.operands[0];
  bool is_named = first.type == ZYDIS_OPERAND_TYPE_REGISTER;
  MemoryOperand o = implied(is_named ? gpr_number(first.reg.value) : static_cast<uint8_t>(RAX), access, size);
  o.wraps_at_32_bits = d.insn.address_width == 32;
  return o;
}

// The whole line that rax, or another register, leads to; in a segment that a prefix names.
MemoryOperand line_of(const Decoded& d, Access access) {
  MemoryOperand o = by_register(d, access, 64);
  o.extent = Extent::Line;
  for (int i = 0; i < d.insn.raw.prefix_count; ++i) {
    if (d.insn.raw.prefixes[i].value == 0x64) o.segment = Segment::Fs;
    if (d.insn.raw.prefixes[i].value == 0x65) o.segment = Segment::Gs;
  }
  return o;
}

// VIA's encryption: blocks of 16 bytes, as many as rcx says. The pointers that montmul finds in memory are not told.
void add_padlock(MemoryOperands& all, const Decoded& d) {
  auto add = [&](uint8_t base, Access access, uint32_t size, Extent extent) {
    MemoryOperand o = implied(base, access, size);
    o.extent = extent;
    o.wraps_at_32_bits = d.insn.address_width == 32;
    all.add(o);
  };
  constexpr uint32_t longest_key = 240;
  switch (d.insn.mnemonic) {
    case ZYDIS_MNEMONIC_XCRYPT_CBC:
    case ZYDIS_MNEMONIC_XCRYPT_CFB:
    case ZYDIS_MNEMONIC_XCRYPT_CTR:
    case ZYDIS_MNEMONIC_XCRYPT_OFB: add(RAX, Access::ReadWrite, 16, Extent::Plain); [[fallthrough]];
    case ZYDIS_MNEMONIC_XCRYPT_ECB:
      add(RDX, Access::Read, 16, Extent::Plain);
      add(RBX, Access::Read, longest_key, Extent::State);
      add(RSI, Access::Read, 16, Extent::Repeated);
      return add(RDI, Access::Write, 16, Extent::Repeated);
    case ZYDIS_MNEMONIC_XSHA1:
      add(RSI, Access::Read, 1, Extent::Repeated);
      return add(RDI, Access::ReadWrite, 20, Extent::Plain);
    case ZYDIS_MNEMONIC_XSHA256:
      add(RSI, Access::Read, 1, Extent::Repeated);
      return add(RDI, Access::ReadWrite, 32, Extent::Plain);
    case ZYDIS_MNEMONIC_XSTORE: return add(RDI, Access::Write, 8, is_repeated(d) ? Extent::Repeated : Extent::State);
    case ZYDIS_MNEMONIC_MONTMUL: return add(RSI, Access::Read, 32, Extent::Plain);
    default: return;
  }
}

// True: Zydis' operands are not asked.
bool make_special(MemoryOperands& all, const Decoded& d) {
  if (names_no_memory(d)) return true;
  if (d.insn.meta.category == ZYDIS_CATEGORY_PADLOCK) return add_padlock(all, d), true;
  switch (d.insn.mnemonic) {
    case ZYDIS_MNEMONIC_ENTER: {
      uint32_t size = d.insn.operand_width == 16 ? 2 : 8;
      all.add(implied(RSP, Access::Write, size));
      all.add(implied(RBP, Access::Read, size));
      for (size_t n = 0; n < all.size(); ++n) all[n].displacement_scale = MemoryOperand::by_immediate;
      return true;
    }
    case ZYDIS_MNEMONIC_CLZERO: all.add(line_of(d, Access::Write)); return true;
    case ZYDIS_MNEMONIC_MONITOR:
    case ZYDIS_MNEMONIC_MONITORX:
    case ZYDIS_MNEMONIC_UMONITOR: all.add(line_of(d, Access::None)); return true;
    case ZYDIS_MNEMONIC_UIRET: all.add(implied(RSP, Access::Read, 24)); return true;
    default: return false;
  }
}

}  // namespace

MemoryOperands make_operands(const Decoded& d) {
  MemoryOperands all;
  if (make_special(all, d)) return all;
  for (bool reading : {true, false})
    for (const ZydisDecodedOperand& op : d.all()) {
      bool is_turn = is_memory(op) && (op.actions & ZYDIS_OPERAND_ACTION_MASK_READ ? true : false) == reading;
      if (!is_turn) continue;
      MemoryOperand o = basic_operand(d, op);
      refine(o, d, op);
      all.add(o);
    }
  if (d.insn.mnemonic == ZYDIS_MNEMONIC_ENQCMD || d.insn.mnemonic == ZYDIS_MNEMONIC_ENQCMDS)
    all.add(by_register(d, Access::Write, 64));
  return all;
}

}  // namespace weir::x86
