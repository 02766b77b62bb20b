// What is not written often: operands of the program, masks.
#include "instrument/emitter.h"

namespace weir::instrument {

void Emitter::copy_with(std::span<const uint8_t> before, uint8_t reg, const Memory& m, std::span<const std::byte> rest) {
  for (uint8_t b : before) bytes(b);
  p_ = put_operand(p_, p_, reg, m, 0);
  copy(rest);
}

void Emitter::encode(Size size, uint8_t opcode, uint8_t reg, const ProgramOperand& m) {
  for (uint8_t prefix : m.prefixes) bytes(prefix);
  if (size || m.rex) bytes(0x40 | size | (reg >> 3) << 2 | m.rex);
  auto modrm = static_cast<uint8_t>(m.and_modrm.front());
  bytes(opcode, (modrm & 0xc7) | (reg & 7) << 3);
  copy(m.and_modrm.subspan(1));
}

void Emitter::note_place(uint8_t* begin, const uint8_t* displacement) {
  *begin = segment_;
  places_->push_back(static_cast<uint32_t>(displacement - begin_));
}

// c4, R X B m m m m m, W v v v v L p p
void Emitter::vex(Prefix prefix, uint8_t opcode, uint8_t reg, const Memory& m) {
  uint8_t* begin = p_;
  if (m.is_thread) bytes(gs);
  bytes(0xc4, inverted(reg, 3, 7) | inverted(m.rex, 1, 6) | inverted(m.rex, 0, 5) | F0f, 0xf8 | prefix, opcode);
  p_ = put_operand(begin, p_, reg, m, 0);
}

void Emitter::vex(Prefix prefix, uint8_t opcode, uint8_t reg, Gpr rm) {
  bytes(0xc4, inverted(reg, 3, 7) | inverted(0, 0, 6) | inverted(rm, 3, 5) | F0f, 0xf8 | prefix, opcode,
        0xc0 | (reg & 7) << 3 | (rm & 7));
}

}  // namespace weir::instrument
