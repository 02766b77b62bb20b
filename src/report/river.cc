#include "report/river.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

namespace weir::report {
namespace {
constexpr double epsilon = 1e-9;  // sums of shares are rounded; a share that is a step must not go to the next one
}

std::vector<double> filter_steps() {
  std::vector<double> steps = {0, 0.0001, 0.0002, 0.0005};
  for (int i = 1; i <= 20; i++) steps.push_back(i / 1000.0);
  for (int i = 3; i <= 20; i++) steps.push_back(i / 100.0);
  return steps;
}

double initial_filter(const std::vector<store::Cycles>& totals, store::Cycles whole, size_t n) {
  if (totals.size() < n || whole == 0) return 0;
  double share = static_cast<double>(totals[n - 1]) / static_cast<double>(whole);
  for (double step : filter_steps())
    if (step >= share - epsilon) return step;
  return filter_steps().back();
}

double arc_width(double share) { return std::min(9.0, std::max(1.0, std::log2(1000 * share + 0.0001))); }

Result<River> river_of(const store::Reader& reader) {
  River river;
  TRY(store::Totals totals, reader.totals());
  river.whole = totals.all();
  store::FunctionQuery query;
  query.order = "total";
  std::vector<store::Cycles> ranked;
  TRY_VOID(reader.functions(query, [&](const store::FunctionRow& f) {
    river.functions.push_back(f);
    ranked.push_back(f.total);
  }));
  river.filter = initial_filter(ranked, river.whole);
  // Where rounding up goes past every function, the largest are drawn.
  constexpr size_t most = 300;
  if (!ranked.empty() && static_cast<double>(ranked[0]) < (river.filter - epsilon) * static_cast<double>(river.whole))
    river.filter = 0;
  if (river.functions.size() > most) river.functions.resize(most);
  std::erase_if(river.functions, [&](const store::FunctionRow& f) {
    return river.filter > 0 && static_cast<double>(f.total) / static_cast<double>(river.whole) < river.filter - epsilon;
  });
  std::unordered_set<uint32_t> shown;
  for (const store::FunctionRow& f : river.functions) shown.insert(f.id);
  TRY_VOID(reader.calls({}, [&](const store::CallRow& c) {
    if (shown.contains(c.caller) && shown.contains(c.callee)) river.arcs.push_back({c.caller, c.callee, c.calls, c.total});
  }));
  return river;
}

}  // namespace weir::report
