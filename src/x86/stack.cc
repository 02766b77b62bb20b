#include "x86/stack.h"

#include "x86/insn.h"

namespace weir::x86 {

bool moves_stack(std::span<const std::byte> insn) {
  auto b = [&](size_t i) { return i < insn.size() ? static_cast<uint8_t>(insn[i]) : uint8_t{0}; };
  if ((b(0) & 0xf8) != 0x48) return false;
  bool is_load = b(1) == 0x8b, is_store = b(1) == 0x89, is_lea = b(1) == 0x8d;
  uint8_t mod = b(2) >> 6, reg = (b(2) >> 3 & 7) | (b(0) & 4) << 1, rm = (b(2) & 7) | (b(0) & 1) << 3;
  if (is_store && mod == 3 && rm == RSP) return reg != RBP;
  if ((!is_load && !is_lea) || reg != RSP) return false;
  if (mod == 3) return is_load && rm != RBP;
  bool has_sib = (b(2) & 7) == 4;
  uint8_t base = has_sib ? (b(3) & 7) | (b(0) & 1) << 3 : rm, index = has_sib ? (b(3) >> 3 & 7) | (b(0) & 2) << 2 : RSP;
  bool is_own = index == RSP && (base == RSP || (base == RBP && mod));
  return is_load || !is_own;
}

}  // namespace weir::x86
