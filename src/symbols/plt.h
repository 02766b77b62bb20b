// The entries of procedure linkage tables, named after what they lead to.
#pragma once

#include <span>
#include <vector>

#include "symbols/object.h"
#include "symbols/symbols.h"

namespace weir::symbols {

// Sorted. `functions`, sorted, name the resolvers that an entry without a symbol leads to.
std::vector<Function> plt_entries(const Object& image, std::span<const Function> functions);

}  // namespace weir::symbols
