// From bytes to a Shape: what decode() does the first time it meets one.
#pragma once

#include "x86/encoding.h"
#include "x86/insn.h"

namespace weir::x86 {

// Of the instruction in the 16 readable bytes at `bytes`, of which only the first layout.shape_end may matter.
Shape make_shape(const uint8_t* bytes, const Layout& layout);

// Nothing is known: worst-case register sets, length 0.
Shape unknown_shape();

}  // namespace weir::x86
