// The in-line part of what runtime/kinds.cc does.
#pragma once

#include <vector>

#include "instrument/tool.h"

namespace weir::memory {

// Temp A = the kind (runtime::Kind) of the address that `address` leaves in A. B and C are lost.
void append_kind(std::vector<instrument::Op>& ops, std::initializer_list<instrument::Op> address);

}  // namespace weir::memory
