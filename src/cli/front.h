// A profile is kept even when Weir is killed (spec B1): the process that was started only waits; the work is done by another
// one, which ends the program and writes what there is when the first is gone.
#pragma once

#include <functional>

#include "base/result.h"

namespace weir::cli {

// Does `work` in a child process, and returns what it returns. Signals that are sent to us reach it.
Result<int> with_front(const std::function<Result<int>()>& work);

}  // namespace weir::cli
