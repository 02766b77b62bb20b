// Parts of Weir that are loaded when they are needed: what they are linked to would make every start of Weir slower.
#pragma once

#include <string>

#include "base/result.h"

namespace weir {

// "libweir_cost.so" → its path: beside the program, one directory up (tests), or where it is installed.
Result<std::string> module_path(const std::string& name);

}  // namespace weir
