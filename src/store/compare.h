// Two runs, function by function. Functions are matched by name and image (without its directory): addresses, ids and lines
// change with every build. Those that share a name (static functions) are matched in the order of their addresses.
#pragma once

#include "store/reader.h"

namespace weir::store {

struct Pair {
  std::optional<FunctionRow> now, before;  // none: it did not run; one of the two is there
  const FunctionRow& either() const { return now ? *now : *before; }
};

// Of the selected threads. The functions of `now` in the order of their ids, then those that only ran before.
Result<std::vector<Pair>> compare(const Reader& now, const Reader& before, OsTime os);

}  // namespace weir::store
