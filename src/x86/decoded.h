// What Zydis says of an instruction: shapes and operands are made of it.
#pragma once

#include <Zydis/Zydis.h>

#include <cstdint>
#include <span>

#include "x86/encoding.h"

namespace weir::x86 {

struct Decoded {
  ZydisDecodedInstruction insn;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];

  std::span<const ZydisDecodedOperand> all() const { return {operands, insn.operand_count}; }
};

// Of the instruction in the 16 bytes at `bytes`. A displacement of one byte, if it is EVEX's, is taken for 1: so Zydis tells what
// it is multiplied with (disp8*N).
bool decode_with_zydis(const uint8_t* bytes, const Layout& layout, Decoded& d);

}  // namespace weir::x86
