// From what Zydis says to the memory operands of a shape, and where they are kept.
#pragma once

#include "x86/decoded.h"
#include "x86/operands.h"

namespace weir::x86 {

// With no displacement but the implied: what push subtracts, what pop adds.
MemoryOperands make_operands(const Decoded& d);

// Those of the common shapes (slot.h), then those of the shapes met since: Shape::operands says which.
extern const MemoryOperand common_operands[];
extern const uint32_t common_operand_count;
uint32_t keep_operands(const MemoryOperands& operands);

}  // namespace weir::x86
