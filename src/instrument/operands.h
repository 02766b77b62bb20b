// What operations can tell of memory operands (Op::GetAddress and those behind it).
#pragma once

#include "x86/operands.h"

namespace weir::instrument {

// Does Op::GetExtent tell it? Not how many rows a tile has.
inline bool has_extent(const x86::MemoryOperand& o) { return o.extent != x86::Extent::Rows; }

}  // namespace weir::instrument
