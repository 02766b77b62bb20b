// What became worse, and whether that is certain: from the figures of two sides to lists and a verdict. docs/report.md has the rules.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "report/statistics.h"
#include "store/compare.h"

namespace weir::report {

struct Rules {
  std::optional<double> threshold;  // percent of the code before
  double level = 99;                // percent: how certain a change must be that is measured with an error
  bool per_function = false;        // the threshold holds for each function, too
  bool totals = false;              // of single runs that have an error, the whole is judged all the same
  std::string filter;               // a regular expression: only functions of such names, and each is judged
  double error_rate() const { return 1 - level / 100; }
};

// What the figures are worth.
enum class Basis : uint8_t {
  Exact,   // one exact run a side: cycles of code have no error
  Runs,    // several runs on a side: they show how much runs vary
  Counts,  // one sampled run a side: shares have the error of sampling, the whole has one that nobody knows
  Clock,   // one run a side, with times of a clock: errors are not known
};

// All of a side. Of samples: in those of the rate now.
struct Side {
  Measured code;  // of each run
  std::vector<double> os_time;
  double sum() const;  // of code, over all runs
  double all() const;  // mean of code and OS time
};

struct Change {
  const store::Pair* pair = nullptr;
  Difference self;    // code
  double growth = 0;  // of the whole before; where single sampled runs are compared: of its share
  double share_before = 0, share_now = 0;
  std::optional<double> p;  // corrected; none: exact, or not tested
  bool is_certain = true;
};

struct Judgement {
  Basis basis = Basis::Exact;
  Difference whole;
  bool judges_whole = true, judges_functions = false;  // of the threshold
  Spread spread;     // of single sampled runs: by how much shares differ beyond the error of sampling
  size_t tests = 0;  // functions that were tested, and corrected for
  std::vector<Change> worse, better, added, gone;
  std::vector<Change> renamed;      // renamed or moved, otherwise as before
  std::vector<Change> unclear;      // changes within their errors
  std::vector<std::string> beyond;  // the threshold: what, in words
  double grown() const { return whole.before > 0 ? whole.change() / whole.before : whole.now > 0 ? 1 : 0; }
  bool whole_is_certain(const Rules& rules) const {
    return !whole.has_error ? whole.change() != 0 : whole.p <= rules.error_rate();
  }
};

// `counts_per_unit` is for samples whose rates differ: samples that were counted for each one told.
struct Figures {
  Basis basis;
  Side before, now;
  std::vector<double> scale_before, scale_now;  // what the counts of each run were multiplied by
  bool is_sampled = false;
};
Result<Judgement> judge(const std::vector<store::Pair>& pairs, const Figures& figures, const Rules& rules);

// "+12.34 %", with enough digits to be seen.
std::string signed_percent(double fraction);

}  // namespace weir::report
