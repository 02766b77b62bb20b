// Two programs, or two builds of one, function by function: the figures of functions that match.h has found to be the same.
#pragma once

#include <map>

#include "store/match.h"
#include "store/reader.h"

namespace weir::store {

struct Pair {
  std::optional<FunctionRow> now, before;  // means over the runs of a side; none: it ran in none; one of the two is there
  std::vector<Cycles> code_now, code_before;  // self time in each run, without OS time; of an OS call its time
  bool is_renamed = false, is_moved = false;
  double similarity = 1;
  const FunctionRow& either() const { return now ? *now : *before; }
  bool is_code() const { return either().id != none; }
};

// Of the selected threads of the runs that were matched. The functions of `now` in the order of their ids, then those that only ran before.
// Times of the runs are multiplied by their scales (none: by 1).
struct Scales {
  std::vector<double> before, now;
};
Result<std::vector<Pair>> compare(const Match& match, OsTime os, const Scales& scales = {});

// An error, unless both are of one kind and count the same. What times of the run before are multiplied by: 1, but for samples
// that were taken at another rate.
Result<double> scale_of(const Reader& now, const Reader& before);
Cycles scaled(Cycles time, double scale);

// The threads of now, and which before each is compared with: the only one with its name, in both runs. (Of several with one
// name nobody knows which is which; a process' first is told from the others.)
Result<std::map<uint32_t, uint32_t>> same_threads(const Reader& now, const Reader& before);

}  // namespace weir::store
