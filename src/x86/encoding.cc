// Finding opcode, ModRM and SIB behind any prefixes, in any of the opcode maps.
#include "x86/encoding.h"

#include <algorithm>
#include <cstring>

namespace weir::x86 {
namespace {

constexpr bool is_prefix(uint8_t byte) {
  return one_byte_forms[byte] == Form::Special && byte != 0x0f && byte != 0x62 && byte != 0x8f && byte != 0xc4 &&
         byte != 0xc5;
}

void end_behind_opcode(Layout& l) { l.shape_end = l.opcode_offset + 1; }

void end_behind_modrm(Layout& l, const uint8_t* bytes) {
  l.modrm_offset = l.opcode_offset + 1;
  l.shape_end = l.modrm_offset + 1 + has_sib(bytes[l.modrm_offset]);
}

void legacy_escape(Layout& l, const uint8_t* bytes) {
  uint8_t op = bytes[++l.opcode_offset];
  l.map = 1;
  if (op == 0x38 || op == 0x3a) {
    l.map = op == 0x38 ? 2 : 3;
    ++l.opcode_offset;
    return end_behind_modrm(l, bytes);
  }
  if (two_byte_forms[op] == Form::Bare) return end_behind_opcode(l);
  end_behind_modrm(l, bytes);
  bool register_only = op >= 0x20 && op <= 0x23;
  if (register_only) l.shape_end = l.modrm_offset + 1;
  // 3DNow! has its real opcode behind the displacement.
  if (op == 0x0f) l.shape_end += displacement_size(bytes + l.modrm_offset) + 1;
}

// C5 P op, C4 P P op, 8F P P op, 62 P P P op.
void vector_escape(Layout& l, const uint8_t* bytes) {
  uint8_t escape = bytes[l.opcode_offset];
  uint8_t first = bytes[l.opcode_offset + 1];
  l.encoding = escape == 0x62 ? Encoding::Evex : escape == 0x8f ? Encoding::Xop : Encoding::Vex;
  l.map = escape == 0xc5 ? 1 : escape == 0x62 ? first & 7 : first & 0x1f;
  l.opcode_offset += escape == 0xc5 ? 2 : escape == 0x62 ? 4 : 3;
  bool vzeroupper = l.encoding == Encoding::Vex && l.map == 1 && bytes[l.opcode_offset] == 0x77;
  if (vzeroupper) return end_behind_opcode(l);
  end_behind_modrm(l, bytes);
}

}  // namespace

Layout layout_of(const uint8_t* bytes) {
  // Zeros behind the instruction, so that an endless row of prefixes still ends.
  uint8_t padded[32] = {};
  memcpy(padded, bytes, max_insn_length);
  Layout l;
  while (is_prefix(padded[l.opcode_offset])) ++l.opcode_offset;
  uint8_t op = padded[l.opcode_offset];
  switch (op) {
    case 0x0f: legacy_escape(l, padded); break;
    case 0x62:
    case 0xc4:
    case 0xc5: vector_escape(l, padded); break;
    case 0x8f:  // XOP only with a map that cannot be the ModRM of pop
      if ((padded[l.opcode_offset + 1] & 0x1f) >= 8) vector_escape(l, padded);
      else end_behind_modrm(l, padded);
      break;
    default:
      if (one_byte_forms[op] == Form::ModRm) end_behind_modrm(l, padded);
      else end_behind_opcode(l);
  }
  l.shape_end = std::min<uint8_t>(l.shape_end, max_insn_length);
  return l;
}

}  // namespace weir::x86
