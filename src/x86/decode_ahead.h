// decode(), for one who decodes instruction after instruction.
//
// Where the next one begins is known from the first bytes, by simple rules that are nearly always right, long before the
// shape is found; so the look-up of one instruction can overlap with the next. The length that is returned was compared
// with the shape's, but nothing waits for that.
#pragma once

#include "x86/insn.h"

namespace weir::x86 {

// What the walk needs at once, without a look at the shape.
struct Step {
  size_t length;
  Kind kind;
  bool is_special;
};

// As decode(), into `insn`.
Step decode_ahead(std::span<const std::byte> bytes, AppPc pc, Insn& insn);

}  // namespace weir::x86
