// How often the blocks of a function run, by a guess from its shape: loops go round several times, and branches mostly do not jump
// ahead, as compilers lay code out (Ball and Larus, "Branch prediction for free"; Wu and Larus for the rest).
#pragma once

#include <vector>

#include "x86/function.h"

namespace weir::count {

// By block; a call of the function is 1.
std::vector<float> guess_frequencies(const x86::Function& function);

}  // namespace weir::count
