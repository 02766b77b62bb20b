// Memory operands that cannot be copied: those of programs that use %gs themselves, and [rip + disp] where the cache is too far away.
//
//     gs:[base + index*scale + disp]   →   [s + index*scale + disp]      s = app_gs + base
//     gs:[rip + disp]                  →   [t + s]                       s = app_gs, t = rip + disp
//     gs:[offset], of movabs           →   the same, as a mov with a ModRM
//     [rip + disp]                     →   [s]                           s = rip + disp
//
// s and t are registers that the instruction does not use; app_gs is the program's base, a word of the thread block. What cannot be written so
// (operands that are implied, 32-bit addresses, writing %gs itself) is Kind::Far: see x86/shape.cc.

#include <algorithm>
#include <array>
#include <cstring>

#include "instrument/lowering.h"
#include "x86/encoding.h"

namespace weir::instrument {

using x86::Gpr;

namespace {

struct Parts {
  // All that is in front of ModRM, without %gs and the bits that extend the base, and an index that is not there.
  std::vector<uint8_t> before;
  uint8_t modrm = 0, sib = 0;
  bool extends_base = false, is_wide = false, is_pop = false;
  std::span<const std::byte> rest;  // displacement and immediate
};

// movabs as the mov that has [disp32] in its place.
uint8_t opcode_with_modrm(uint8_t movabs) { return (movabs ^ 2) - 0x18; }

Parts take_apart(const x86::Shape& s, std::span<const std::byte> bytes) {
  auto b = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  auto is_prefix = [](uint8_t x) {
    return (x >= 0x64 && x <= 0x67) || x == 0xf2 || x == 0xf3 || x == 0xf0 || x == 0x2e || x == 0x36 || x == 0x3e ||
           x == 0x26;
  };
  auto is_rex = [](uint8_t x) { return (x & 0xf0) == 0x40; };
  Parts p;
  size_t i = 0;
  for (; is_prefix(b(i)) || (is_rex(b(i)) && (is_prefix(b(i + 1)) || is_rex(b(i + 1)))); i++)  // (such a REX is ignored)
    if (!is_rex(b(i)) && !(s.uses_gs && (b(i) == 0x64 || b(i) == 0x65))) p.before.push_back(b(i));
  bool is_absolute = s.modrm_offset == 0;
  bool has_sib = !is_absolute && x86::has_sib(b(s.modrm_offset));
  p.is_pop = b(i + is_rex(b(i))) == 0x8f && s.modrm_offset == i + is_rex(b(i)) + 1;
  bool is_xop = b(i) == 0x8f && s.modrm_offset == i + 4;
  if (is_rex(b(i))) {
    p.extends_base = b(i) & 1;
    p.is_wide = b(i) & 8;
    p.before.push_back(b(i++) & (has_sib ? ~1 : ~3));
  } else if (b(i) == 0xc4 || b(i) == 0x62 || is_xop) {  // here the bit is inverted
    p.before.push_back(b(i++));
    p.extends_base = !(b(i) & 0x20);
    p.before.push_back(b(i++) | (has_sib ? 0x20 : 0x60));
  }
  if (is_absolute) {
    p.before.push_back(opcode_with_modrm(b(i)));
    p.modrm = 5;
    return p;
  }
  for (; i < s.modrm_offset; i++) p.before.push_back(b(i));
  p.modrm = b(i++);
  if (has_sib) p.sib = b(i++);
  p.rest = bytes.subspan(i);
  return p;
}

}  // namespace

void Lowering::rewrite_operand(const x86::Insn& insn, std::span<const std::byte> bytes) {
  const x86::Shape& s = *insn.shape;
  Parts p = take_apart(s, bytes);
  if (p.modrm >> 6 == 3) return gs_register(insn, bytes);
  // At most six registers are used: four that are implied, a base and an index.
  std::array<Gpr, 2> scratch{};
  bool is_absolute = s.modrm_offset == 0;
  size_t found = 0, wanted = s.uses_gs && (s.rip_relative || is_absolute) ? 2 : 1;
  for (Gpr r : {x86::RBX, x86::RCX, x86::RDI, x86::RSI, x86::RDX, x86::RAX, x86::RBP})
    if (found < wanted && !((s.reads.gpr | s.writes.gpr) >> r & 1)) scratch[found++] = r;
  CHECK(found == wanted);
  bool lends = register_clock_ && uses_clock_register(insn);
  uint32_t begin = e_.offset();
  mark(Mark::Exact, insn.pc, 0, begin);
  uint8_t restore = rt::RestoreSpill0;
  for (size_t n = 0; n < wanted; n++) e_.mov(thread(gs_spill(static_cast<int>(n))), scratch[n]);
  if (wanted == 2) restore |= rt::RestoreSpill1;
  if (lends) {
    take_vector31();
    restore |= rt::RestoreClock;
  }
  auto [sum, target] = scratch;
  if (s.uses_gs) e_.mov(sum, thread(gs_app));
  else e_.movabs(sum, insn.target.value);
  uint8_t mod = p.modrm >> 6, rm = p.modrm & 7;
  uint8_t base = rm == 4 ? p.sib & 7 : rm;
  if (is_absolute) {
    uint64_t offset;
    memcpy(&offset, &bytes[s.length - sizeof offset], sizeof offset);
    e_.movabs(target, offset);
    rm = 4, p.sib = static_cast<uint8_t>(target << 3);
  } else if (!s.uses_gs) {
    p.rest = p.rest.subspan(4);
  } else if (s.rip_relative) {
    e_.movabs(target, insn.target.value);
    rm = 4, p.sib = static_cast<uint8_t>(target << 3);
    p.rest = p.rest.subspan(4);
  } else if (mod == 0 && base == 5) {  // no base, disp32
    mod = 2;
  } else {
    auto whole = static_cast<Gpr>(base | p.extends_base << 3);
    e_.lea(sum, instrument::sum(whole, sum));
    bool pops = p.is_pop && whole == x86::RSP;  // its address is that after the pop
    if (pops) e_.lea(sum, at(sum, p.is_wide || !std::ranges::count(p.before, 0x66) ? 8 : 2));
  }
  bool add_zero = sum == x86::RBP && mod == 0;  // [rbp] has a displacement
  if (add_zero) mod = 1;
  mark(Mark::Middle, insn.pc, restore, begin, static_cast<uint8_t>(sum | target << 4));
  Memory operand{.modrm = static_cast<uint8_t>(mod << 6 | (rm == 4 ? 4 : sum)),
                 .sib = static_cast<uint8_t>((p.sib & 0xf8) | sum),
                 .displacement_size = add_zero};
  e_.copy_with(p.before, p.modrm >> 3, operand, p.rest);
  for (size_t n = 0; n < wanted; n++) e_.mov(scratch[n], thread(gs_spill(static_cast<int>(n))));
  if (lends) give_vector31_back();
}

// rdgsbase, wrgsbase; swapgs faults.
void Lowering::gs_register(const x86::Insn& insn, std::span<const std::byte> bytes) {
  Parts p = take_apart(*insn.shape, bytes);
  bool is_base =
      insn.shape->modrm_offset >= 2 && p.before.size() >= 2 && p.before.end()[-2] == 0x0f && p.before.back() == 0xae;
  if (!is_base) {
    mark(Mark::Run, insn.pc);
    return e_.copy(bytes);
  }
  mark(Mark::Exact, insn.pc);
  auto r = static_cast<Gpr>((p.modrm & 7) | p.extends_base << 3);
  if ((p.modrm >> 3 & 7) == 1) {
    e_.mov(r, thread(gs_app));
    if (!p.is_wide) e_.mov32(r, r);
  } else {
    e_.mov(thread(gs_app), r);
    if (!p.is_wide) e_.mov32(thread(gs_app + 4), 0);
  }
}

}  // namespace weir::instrument
