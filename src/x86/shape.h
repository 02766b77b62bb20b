// From bytes to a Shape: what decode() does the first time it meets one.
#pragma once

#include "x86/encoding.h"
#include "x86/insn.h"
#include "x86/operands.h"

namespace weir::x86 {

// Of the instruction in the 16 readable bytes at `bytes`, of which only the first layout.shape_end may matter. Its operands
// are yet to be kept: Shape::operands is 0.
struct MadeShape {
  Shape shape;
  MemoryOperands operands;
};
MadeShape make_shape(const uint8_t* bytes, const Layout& layout);

// Nothing is known: worst-case register sets, length 0.
Shape unknown_shape();

}  // namespace weir::x86
