// The call graph as a river of time (V4 to V7), for those who draw it elsewhere. viewer/src/graph has the same formulas.
#pragma once

#include <vector>

#include "store/reader.h"

namespace weir::report {

// The steps of the time filter: 0 to 20 %, finer below 2 %.
std::vector<double> filter_steps();
// So that `n` functions show: the share of the n-th, rounded up to a step. `totals` has the largest first.
double initial_filter(const std::vector<store::Cycles>& totals, store::Cycles whole, size_t n = 30);
// Of an arc, in pixels: min(9, max(1, log2(1000 t + 0.0001))).
double arc_width(double share);

struct River {
  struct Arc {
    uint32_t caller, callee;  // ids
    uint64_t calls;
    store::Cycles total;
  };
  store::Cycles whole = 0;
  double filter = 0;
  std::vector<store::FunctionRow> functions;  // the largest first
  std::vector<Arc> arcs;
};
Result<River> river_of(const store::Reader& reader);

}  // namespace weir::report
