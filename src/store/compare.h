// Two runs, function by function. Functions are matched by name and image (without its directory): addresses, ids and lines
// change with every build. Those that share a name (static functions) are matched in the order of their addresses.
#pragma once

#include <map>

#include "store/reader.h"

namespace weir::store {

struct Pair {
  std::optional<FunctionRow> now, before;  // none: it did not run; one of the two is there
  const FunctionRow& either() const { return now ? *now : *before; }
};

// Of the selected threads. The functions of `now` in the order of their ids, then those that only ran before, whose times are
// multiplied by `scale`.
Result<std::vector<Pair>> compare(const Reader& now, const Reader& before, OsTime os, double scale = 1);

// An error, unless both are of one kind and count the same. What times of the run before are multiplied by: 1, but for samples
// that were taken at another rate.
Result<double> scale_of(const Reader& now, const Reader& before);
Cycles scaled(Cycles time, double scale);

// The threads of now, and which before each is compared with: the only one with its name, in both runs. (Of several with one
// name nobody knows which is which; a process' first is told from the others.)
Result<std::map<uint32_t, uint32_t>> same_threads(const Reader& now, const Reader& before);

}  // namespace weir::store
