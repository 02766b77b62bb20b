// `weir diff`: what changed between two runs, or between several of each. docs/report.md has the fields.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/judge.h"
#include "report/output.h"
#include "store/compare.h"

namespace weir::report {

struct DiffOptions : Rules {
  store::OsTime os = store::OsTime::InSelf;  // Apart: OS calls are listed, too
  std::optional<uint64_t> limit;             // rows a list; 0: all; none: what fits a screen in text, all in JSON and CSV
  std::vector<std::string> map;              // OLD=NEW: images or functions that are the same
};

// True: more than the threshold.
using Readers = std::vector<store::Reader*>;
Result<bool> show_diff(const Readers& before, const Readers& now, const DiffOptions& options, Output& out);

}  // namespace weir::report
