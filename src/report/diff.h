// `weir diff`: what changed between two runs. docs/report.md has the fields.
#pragma once

#include <optional>
#include <string>

#include "report/output.h"
#include "store/compare.h"

namespace weir::report {

struct DiffOptions {
  store::OsTime os = store::OsTime::InSelf;
  std::string filter;               // a regular expression for names
  std::optional<uint64_t> limit;    // rows a list; 0: all; none: what fits a screen in text, all otherwise
  std::optional<double> threshold;  // percent of the code before
};

// True: more than the threshold.
Result<bool> show_diff(const store::Reader& before, const store::Reader& now, const DiffOptions& options, Output& out);

}  // namespace weir::report
