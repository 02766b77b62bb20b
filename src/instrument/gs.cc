// Programs that use %gs themselves: the thread block has it, so their base is a word of the block.
//
// An access gs:[base + index*scale + disp] becomes [s + index*scale + disp], with s = app_gs + base in a register that the
// instruction does not use.

#include "instrument/lowering.h"

namespace weir::instrument {

using x86::Gpr;

namespace {

constexpr uint32_t gs_app = offsetof(rt::ThreadBlock, app_gs);

// The parts of a legacy-encoded instruction.
struct Parts {
  std::vector<uint8_t> prefixes;  // without the segment
  uint8_t rex = 0;
  std::vector<uint8_t> opcode;
  uint8_t modrm = 0, sib = 0;
  std::span<const std::byte> rest;  // displacement and immediate
  bool is_vex = false;
};

Parts take_apart(const x86::Shape& s, std::span<const std::byte> bytes) {
  auto b = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  Parts p;
  size_t i = 0;
  for (; i < s.modrm_offset; i++) {
    uint8_t x = b(i);
    if (x == 0x65) continue;
    if (x != 0x66 && x != 0x67 && x != 0xf2 && x != 0xf3 && x != 0xf0 && x != 0x2e && x != 0x36 && x != 0x3e && x != 0x26)
      break;
    p.prefixes.push_back(x);
  }
  p.is_vex = b(i) == 0xc4 || b(i) == 0xc5 || b(i) == 0x62;
  if ((b(i) & 0xf0) == 0x40) p.rex = b(i++);
  for (; i < s.modrm_offset; i++) p.opcode.push_back(b(i));
  p.modrm = b(i++);
  if (p.modrm >> 6 != 3 && (p.modrm & 7) == 4) p.sib = b(i++);
  p.rest = bytes.subspan(i);
  return p;
}

}  // namespace

void Lowering::gs_insn(const x86::Insn& insn, std::span<const std::byte> bytes, x86::RegSet live) {
  const x86::Shape& s = *insn.shape;
  uint32_t begin = e_.offset();
  mark(Mark::Exact, insn.pc, 0, begin);
  Parts p = s.modrm_offset ? take_apart(s, bytes) : Parts{};
  bool is_base = s.modrm_offset && p.modrm >> 6 == 3 && p.opcode.size() == 2 && p.opcode[1] == 0xae;
  if (s.modrm_offset && p.modrm >> 6 == 3 && !is_base) {  // swapgs …: it faults
    mark(Mark::Run, insn.pc);
    return e_.copy(bytes);
  }
  if (is_base) {  // rdgsbase, wrgsbase
    auto r = static_cast<Gpr>((p.modrm & 7) | (p.rex & 1) << 3);
    bool wide = p.rex & 8;
    if ((p.modrm >> 3 & 7) == 1) {
      e_.load_gs(r, gs_app);
      if (!wide) e_.bytes(0x40 | (r >> 3) << 2 | r >> 3, 0x89, 0xc0 | (r & 7) << 3 | (r & 7));  // mov r32, r32
    } else {
      e_.store_gs(r, gs_app);
      if (!wide) e_.store_gs_imm(gs_app + 4, 0);
    }
    return;
  }
  if (!s.modrm_offset || p.is_vex || s.rip_relative) {
    out_.not_supported++;
    jump_out(insn.pc, 0xe9);
    return;
  }
  uint16_t used = s.reads.gpr | s.writes.gpr;
  Gpr scratch = x86::RBX;
  for (Gpr r : {x86::RAX, x86::RDX, x86::RSI, x86::RDI, x86::RCX, x86::RBX})
    if (!(used >> r & 1)) scratch = r;
  bool spill = live.gpr >> scratch & 1;
  if (spill) {
    e_.store_gs(scratch, gs_spill(0));
    mark(Mark::Middle, insn.pc, rt::RestoreSpill0, begin, scratch);
  }
  e_.load_gs(scratch, gs_app);
  uint8_t mod = p.modrm >> 6, rm = p.modrm & 7;
  bool has_sib = rm == 4;
  bool has_index = has_sib && ((p.sib >> 3 & 7) != 4 || (p.rex & 2));
  uint8_t base = (has_sib ? p.sib & 7 : rm) | (p.rex & 1) << 3;
  if (mod == 0 && (base & 7) == 5) mod = 2;  // no base, disp32
  else e_.lea_sum(scratch, static_cast<Gpr>(base));
  for (uint8_t x : p.prefixes) e_.bytes(x);
  if (p.rex) e_.bytes(p.rex & ~1);
  for (uint8_t x : p.opcode) e_.bytes(x);
  uint8_t reg = p.modrm & 0x38;
  if (has_index) e_.bytes(mod << 6 | reg | 4, (p.sib & 0xf8) | scratch);
  else e_.bytes(mod << 6 | reg | scratch);
  e_.copy(p.rest);
  if (spill) e_.load_gs(scratch, gs_spill(0));
}

}  // namespace weir::instrument
