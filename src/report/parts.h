// Functions as their code stands: what the compiler put apart of `work`, as rare, is a row of its own, `work [cold]`.
//
// A profile has it under its function, to which it belongs: control comes there by a jump, not by a call.
#pragma once

#include <vector>

#include "store/reader.h"

namespace weir::report {

// As `functions` of the reader, which folds what was inlined. The self time of what stands apart is in a row of its own, which has no calls;
// its total is that with the calls that are made from there. (OS time stays with the function.)
Result<std::vector<store::FunctionRow>> rows_with_parts(const store::Reader& reader, store::FunctionQuery query);

}  // namespace weir::report
