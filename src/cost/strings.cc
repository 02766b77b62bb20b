#include "cost/strings.h"

namespace weir::cost {

std::optional<StringInstruction> string_instruction(std::span<const std::byte> instruction) {
  StringInstruction result;
  unsigned wide = 4;  // bytes of an element, if the opcode does not say one
  for (std::byte b : instruction) {
    auto byte = static_cast<uint8_t>(b);
    switch (byte) {
      case 0xf2:
      case 0xf3: result.repeated = true; continue;
      case 0x66: wide = 2; continue;
      case 0x26:  // segments and address size
      case 0x2e:
      case 0x36:
      case 0x3e:
      case 0x64:
      case 0x65:
      case 0x67: continue;
      default: break;
    }
    if ((byte & 0xf0) == 0x40) {  // REX
      if (byte & 8) wide = 8;
      continue;
    }
    auto size = static_cast<uint16_t>(byte & 1 ? wide : 1);
    switch (byte & 0xfe) {
      case 0xa4:                                                                                // movs
      case 0xaa: result.repetition = {14, 1, static_cast<uint16_t>(32 / size)}; return result;  // stos
      case 0xac:                                                                                // lods
      case 0xae: result.repetition = {28, 2, 1}; return result;                                 // scas
      case 0xa6: result.repetition = {28, 3, 1}; return result;                                 // cmps
      default: return {};
    }
  }
  return {};
}

}  // namespace weir::cost
