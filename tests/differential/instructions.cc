#include "instructions.h"

#include <Zydis/Zydis.h>

#include <cstring>

#include "layout.h"

namespace differential {
namespace {

struct Decoded {
  ZydisDecodedInstruction insn;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

bool decode(const Bytes& bytes, Decoded& d) {
  static const ZydisDecoder decoder = [] {
    ZydisDecoder z;
    ZydisDecoderInit(&z, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    return z;
  }();
  return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes.data(), bytes.size(), &d.insn, d.operands));
}

int pick(Random& random, uint16_t set) {
  if (!set) return static_cast<int>(random.below(16));
  for (;;)
    if (int r = static_cast<int>(random.below(16)); set >> r & 1) return r;
}

void append(Bytes& to, const void* from, size_t size) {
  auto p = static_cast<const uint8_t*>(from);
  to.insert(to.end(), p, p + size);
}

// Results that differ from run to run, or concern the kernel, a hypervisor, or more than this process.
bool is_refused(ZydisMnemonic m, bool allow_state_saves) {
  switch (m) {
    case ZYDIS_MNEMONIC_RDTSC:
    case ZYDIS_MNEMONIC_RDTSCP:
    case ZYDIS_MNEMONIC_RDPMC:
    case ZYDIS_MNEMONIC_RDPRU:
    case ZYDIS_MNEMONIC_RDPID:
    case ZYDIS_MNEMONIC_RDRAND:
    case ZYDIS_MNEMONIC_RDSEED:
    case ZYDIS_MNEMONIC_CPUID:
    case ZYDIS_MNEMONIC_LSL:  // of one segment: the number of the processor
    case ZYDIS_MNEMONIC_XGETBV:
    case ZYDIS_MNEMONIC_RDPKRU:
    case ZYDIS_MNEMONIC_WRPKRU:
    case ZYDIS_MNEMONIC_INT:
    case ZYDIS_MNEMONIC_INT1:
    case ZYDIS_MNEMONIC_VMCALL:
    case ZYDIS_MNEMONIC_VMMCALL:
    case ZYDIS_MNEMONIC_VMFUNC:
    case ZYDIS_MNEMONIC_GETSEC:
    case ZYDIS_MNEMONIC_MONITOR:
    case ZYDIS_MNEMONIC_MONITORX:
    case ZYDIS_MNEMONIC_MWAIT:
    case ZYDIS_MNEMONIC_MWAITX:
    case ZYDIS_MNEMONIC_UMWAIT:
    case ZYDIS_MNEMONIC_TPAUSE:
    case ZYDIS_MNEMONIC_XBEGIN:
    case ZYDIS_MNEMONIC_WRGSBASE:
    case ZYDIS_MNEMONIC_POPF:  // (sets the trap flag: see sequences.cc)
    case ZYDIS_MNEMONIC_POPFD:
    case ZYDIS_MNEMONIC_POPFQ:
    case ZYDIS_MNEMONIC_FLDCW:
    case ZYDIS_MNEMONIC_FLDENV:
    case ZYDIS_MNEMONIC_FRSTOR:
    case ZYDIS_MNEMONIC_FNSTENV:  // with the address of the last x87 instruction
    case ZYDIS_MNEMONIC_FNSAVE:
    case ZYDIS_MNEMONIC_FXRSTOR:
    case ZYDIS_MNEMONIC_FXRSTOR64:
    case ZYDIS_MNEMONIC_XSAVEOPT:
    case ZYDIS_MNEMONIC_XSAVEOPT64: return true;
    case ZYDIS_MNEMONIC_FXSAVE:
    case ZYDIS_MNEMONIC_FXSAVE64:
    case ZYDIS_MNEMONIC_XSAVE:
    case ZYDIS_MNEMONIC_XSAVE64:
    case ZYDIS_MNEMONIC_XSAVEC:
    case ZYDIS_MNEMONIC_XSAVEC64: return !allow_state_saves;
    default: return false;
  }
}

// Extensions that no processor of today has together with AVX-512, or that are privileged: they only fault.
bool is_unusual(const ZydisDecodedInstruction& z) {
  switch (z.meta.isa_ext) {
    case ZYDIS_ISA_EXT_AMD3DNOW:
    case ZYDIS_ISA_EXT_AMX_BF16:
    case ZYDIS_ISA_EXT_AMX_INT8:
    case ZYDIS_ISA_EXT_AMX_TILE:
    case ZYDIS_ISA_EXT_AVX_VNNI:
    case ZYDIS_ISA_EXT_ENQCMD:
    case ZYDIS_ISA_EXT_FMA4:
    case ZYDIS_ISA_EXT_KEYLOCKER:
    case ZYDIS_ISA_EXT_KEYLOCKER_WIDE:
    case ZYDIS_ISA_EXT_KNC:
    case ZYDIS_ISA_EXT_KNCE:
    case ZYDIS_ISA_EXT_KNCV:
    case ZYDIS_ISA_EXT_MOVDIR:
    case ZYDIS_ISA_EXT_PADLOCK:
    case ZYDIS_ISA_EXT_SVM:
    case ZYDIS_ISA_EXT_TBM:
    case ZYDIS_ISA_EXT_UINTR:
    case ZYDIS_ISA_EXT_VTX:
    case ZYDIS_ISA_EXT_XOP:
    case ZYDIS_ISA_EXT_XSAVES: return true;
    default: break;
  }
  switch (z.meta.isa_set) {
    case ZYDIS_ISA_SET_AVX512ER_512:
    case ZYDIS_ISA_SET_AVX512ER_SCALAR:
    case ZYDIS_ISA_SET_AVX512PF_512:
    case ZYDIS_ISA_SET_AVX512_4FMAPS_512:
    case ZYDIS_ISA_SET_AVX512_4FMAPS_SCALAR:
    case ZYDIS_ISA_SET_AVX512_4VNNIW_512:
    case ZYDIS_ISA_SET_AVX512_FP16_128:
    case ZYDIS_ISA_SET_AVX512_FP16_256:
    case ZYDIS_ISA_SET_AVX512_FP16_512:
    case ZYDIS_ISA_SET_AVX512_FP16_SCALAR: return true;
    default: break;
  }
  bool privileged = z.attributes & ZYDIS_ATTRIB_IS_PRIVILEGED;
  return privileged || z.meta.category == ZYDIS_CATEGORY_IO || z.meta.category == ZYDIS_CATEGORY_IOSTRINGOP ||
         z.meta.category == ZYDIS_CATEGORY_UFMA || z.mnemonic == ZYDIS_MNEMONIC_UD0 || z.mnemonic == ZYDIS_MNEMONIC_UD1 ||
         z.mnemonic == ZYDIS_MNEMONIC_UD2 || z.mnemonic == ZYDIS_MNEMONIC_INT3;
}

bool writes(const ZydisDecodedOperand& op) { return op.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE; }

int number_of(ZydisRegister reg) {
  ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
  return ZydisRegisterGetClass(whole) == ZYDIS_REGCLASS_GPR64 ? ZydisRegisterGetId(whole) : -1;
}

// Those that the engine refuses (see docs/limits.md), or that would only make the sequence end here.
bool is_good(Random& random, const Decoded& d, const Registers& registers, Allowed allowed) {
  if (d.insn.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE || is_refused(d.insn.mnemonic, allowed.state_saves)) return false;
  switch (d.insn.meta.category) {
    case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_SYSCALL:
    case ZYDIS_CATEGORY_SYSRET:
    case ZYDIS_CATEGORY_INTERRUPT: return false;
    default: break;
  }
  bool is_frame = d.insn.mnemonic == ZYDIS_MNEMONIC_ENTER || d.insn.mnemonic == ZYDIS_MNEMONIC_LEAVE;
  if (is_frame && !allowed.stack_moves) return false;
  bool is_stack = d.insn.meta.category == ZYDIS_CATEGORY_PUSH || d.insn.meta.category == ZYDIS_CATEGORY_POP;
  if (is_stack && d.insn.operand_width == 16 && !allowed.stack_moves)
    return false;  // (runner.c looks for return addresses)
  if (is_unusual(d.insn) && random.below(400)) return false;
  for (int i = 0; i < d.insn.operand_count; i++) {
    const ZydisDecodedOperand& op = d.operands[i];
    bool is_register = op.type == ZYDIS_OPERAND_TYPE_REGISTER;
    if (is_register && ZydisRegisterGetClass(op.reg.value) == ZYDIS_REGCLASS_SEGMENT && writes(op)) return false;
    int number = is_register ? number_of(op.reg.value) : -1;
    if (number >= 0 && registers.code >> number & 1) return false;  // no jumps into the middle of an instruction
    bool explicit_rsp = is_register && op.visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT && number == 4;
    if (explicit_rsp && writes(op) && (!allowed.stack_moves || random.below(4))) return false;
    bool is_near_rsp = op.type == ZYDIS_OPERAND_TYPE_MEMORY && op.visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT &&
                       op.mem.base == ZYDIS_REGISTER_RSP && op.mem.disp.value < 128;
    // (A broadcast of esp just behind a return was 8 too low at times, under Weir only: nobody knows why.)
    if (number == 4 && d.insn.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX) return false;
    if (is_near_rsp) return false;  // a return address, of now or before
    bool is_odd = op.visibility != ZYDIS_OPERAND_VISIBILITY_EXPLICIT || d.insn.address_width != 64 ||
                  !(d.insn.attributes & ZYDIS_ATTRIB_HAS_MODRM);
    if (op.type == ZYDIS_OPERAND_TYPE_MEMORY && op.mem.segment == ZYDIS_REGISTER_GS && is_odd) return false;
  }
  return true;
}

// The bits of an instruction in front of its memory operand.
struct Head {
  Bytes bytes;
  size_t payload = 0;  // where VEX or EVEX keep the bits of index and base; 0: neither
};

Head legacy_head(Random& random, const Memory* m) {
  Head h;
  if (m && m->segment) h.bytes.push_back(m->segment);
  if (random.percent(1)) h.bytes.push_back(0x67);
  if (m && random.percent(8)) h.bytes.push_back(0xf0);
  unsigned kind = static_cast<unsigned>(random.below(100));
  bool is_vector = kind >= 60;
  if (random.percent(is_vector ? 45 : 12)) h.bytes.push_back(0x66);
  if (random.percent(is_vector ? 35 : 12)) h.bytes.push_back(0xf2 | (random.next() & 1));
  bool needs_rex = m && (m->extends_base || m->extends_index);
  if (needs_rex || random.percent(60))
    h.bytes.push_back(0x40 | (random.next() & (m ? 12 : 13)) | (m && m->extends_index) << 1 | (m && m->extends_base));
  if (kind < 12) {
    h.bytes.push_back(0xd8 | random.below(8));
    return h;
  }
  if (kind >= 40) h.bytes.push_back(0x0f);
  if (kind >= 75) h.bytes.push_back(random.percent(70) ? 0x38 : 0x3a);
  h.bytes.push_back(random.byte());
  return h;
}

uint8_t inverted_extensions(Random& random, const Memory* m) {
  uint8_t rxb = random.byte() & 0xe0;
  if (m) rxb = (rxb & 0x80) | (m->extends_index ? 0 : 0x40) | (m->extends_base ? 0 : 0x20);
  return rxb;
}

Head vex_head(Random& random, const Memory* m) {
  Head h;
  if (m && m->segment) h.bytes.push_back(m->segment);
  uint8_t last = (random.percent(40) ? 0x78 : random.byte() & 0x78) | (random.byte() & 7);  // vvvv, L, pp
  bool is_short = random.percent(20) && !(m && (m->extends_base || m->extends_index));
  if (is_short) {
    h.bytes.insert(h.bytes.end(), {0xc5, uint8_t((random.byte() & 0x80) | last), random.byte()});
  } else {
    h.payload = h.bytes.size() + 1;
    uint8_t first = inverted_extensions(random, m) | (1 + random.below(3));
    h.bytes.insert(h.bytes.end(), {0xc4, first, uint8_t((random.byte() & 0x80) | last), random.byte()});
  }
  return h;
}

// Often with a register 31: the engine has it for itself.
Head evex_head(Random& random, const Memory* m, bool wants_31) {
  Head h;
  if (m && m->segment) h.bytes.push_back(m->segment);
  h.payload = h.bytes.size() + 1;
  uint8_t p0 = inverted_extensions(random, m) | (random.byte() & 0x10) | (1 + random.below(3));
  uint8_t p1 = 4 | (random.byte() & 0x83) | (random.percent(40) ? 0x78 : random.byte() & 0x78);
  uint8_t p2 = (random.byte() & 0x68) | (random.percent(20) ? 0x10 : 0);  // L'L, V'; b
  if (random.percent(50)) p2 |= (random.byte() & 0x80) | random.below(8);
  if ((p1 & 0x78) == 0x78 && random.percent(80)) p2 |= 8;
  if (wants_31) p0 &= m ? 0x6f : 0x0f;
  if (wants_31 && random.percent(30)) p1 &= ~0x78, p2 &= ~8;
  h.bytes.insert(h.bytes.end(), {0x62, p0, p1, p2, random.byte()});
  return h;
}

}  // namespace

Registers Registers::at_begin() { return {HIGH_POINTERS | LOW_POINTERS, SMALL_NUMBERS}; }

Memory random_memory(Random& random, const Registers& registers) {
  Memory m{};
  if (unsigned s = static_cast<unsigned>(random.below(100)); s < 18) m.segment = s < 8 ? 0x64 : 0x65;
  bool aligned = random.percent(75);
  auto small = [&](int range) { return static_cast<int32_t>(random.below(2 * range) - range) & (aligned ? ~63 : ~0); };
  int index = pick(random, registers.numbers & ~(1 << 4));
  if (random.percent(m.segment ? 0 : 20)) {
    m.modrm = 5, m.is_rip_relative = true;
    m.displacement.resize(4);
    return m;
  }
  if (random.percent(m.segment ? 60 : 5)) {  // disp32 alone, or with an index
    bool has_index = random.percent(40);
    m.modrm = 4, m.has_sib = true;
    m.sib = uint8_t(random.byte() & 0xc0) | (has_index ? index & 7 : 4) << 3 | 5;
    m.extends_index = has_index && index >= 8;
    m.extends_base = random.percent(20);
    int32_t at = small(1500) + (m.segment ? 0 : static_cast<int32_t>(LOW_AREA + BIG_AREA / 2));
    append(m.displacement, &at, 4);
    return m;
  }
  int base = pick(random, m.segment ? registers.numbers : registers.pointers);
  if (random.percent(6)) base = 4;  // rsp
  uint8_t mod = base == 4 ? 2 : static_cast<uint8_t>(random.below(3));
  m.has_sib = (base & 7) == 4 || random.percent(30);
  bool has_index = m.has_sib && random.percent(60);
  if ((base & 7) == 5 && mod == 0) mod = 1;
  m.extends_base = base >= 8;
  m.extends_index = has_index && index >= 8;
  m.modrm = mod << 6 | (m.has_sib ? 4 : base & 7);
  if (m.has_sib) m.sib = (random.byte() & 0xc0) | (has_index ? index & 7 : 4) << 3 | (base & 7);
  int32_t d = mod == 1 ? small(100) : small(1500);
  if (base == 4) d = 128 + (d & 0x7ff);
  if (mod) append(m.displacement, &d, mod == 1 ? 1 : 4);
  return m;
}

Bytes random_instruction(Random& random, Registers& registers, uint64_t pc, Allowed allowed) {
  for (;;) {
    Memory memory = random_memory(random, registers);
    const Memory* m = random.percent(50) ? &memory : nullptr;
    unsigned family = static_cast<unsigned>(random.below(100));
    bool wants_31 = family >= 70 && random.percent(35);
    Head h = family < 50 ? legacy_head(random, m) : family < 70 ? vex_head(random, m) : evex_head(random, m, wants_31);
    Bytes b = h.bytes;
    size_t modrm = b.size();
    uint8_t reg = random.byte() & 0x38;
    if (wants_31 && random.percent(70)) reg = 0x38;
    b.push_back((m ? m->modrm : 0xc0 | (wants_31 && random.percent(50) ? 7 : random.byte() & 7)) | reg);
    if (m && m->has_sib) b.push_back(m->sib);
    if (m) b.insert(b.end(), m->displacement.begin(), m->displacement.end());
    for (int i = 0; i < 8; i++) b.push_back(random.byte());
    Decoded d;
    if (!decode(b, d)) continue;
    bool is_gather = m && m->has_sib && d.insn.operand_count > 1;
    if (is_gather) {
      is_gather = false;
      for (const ZydisDecodedOperand& op : d.operands)
        is_gather |= &op < d.operands + d.insn.operand_count && op.type == ZYDIS_OPERAND_TYPE_MEMORY &&
                     op.mem.type == ZYDIS_MEMOP_TYPE_VSIB;
    }
    if (is_gather) {  // its index is a vector: one of those with small elements
      b[modrm + 1] = (b[modrm + 1] & 0xc7) | (4 + random.below(4)) << 3;
      if (h.payload) b[h.payload] |= 0x40;
      if (!decode(b, d)) continue;
    }
    if (!is_good(random, d, registers, allowed)) continue;
    b.resize(d.insn.length);
    bool is_rip_relative = false;
    for (int i = 0; i < d.insn.operand_count; i++)
      is_rip_relative |= d.operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
                         (d.operands[i].mem.base == ZYDIS_REGISTER_RIP || d.operands[i].mem.base == ZYDIS_REGISTER_EIP);
    if (is_rip_relative) {
      uint64_t area = pc < HIGH_CODE ? LOW_AREA : HIGH_AREA;
      uint64_t target = area + BIG_AREA / 2 + (random.below(3000) & (random.percent(75) ? ~63 : ~0));
      auto distance = static_cast<int32_t>(target - pc - b.size());
      memcpy(&b[d.insn.raw.disp.offset], &distance, 4);
    }
    for (int i = 0; i < d.insn.operand_count; i++) {
      const ZydisDecodedOperand& op = d.operands[i];
      if (op.type != ZYDIS_OPERAND_TYPE_REGISTER || !writes(op)) continue;
      if (int r = number_of(op.reg.value); r >= 0) registers.clobber(r);
    }
    return b;
  }
}

}  // namespace differential
