// Did it really change? Tests that say how likely a difference is where nothing changed (p), and how far off it may be.
//
// Three sources of error. Counts of code of a program that does the same have none. Samples are counted events: n of them are off by √n
// (Poisson). Runs differ from one another, by more than their samples do: several runs a side show by how much.
#pragma once

#include <span>
#include <vector>

namespace weir::report {

// The probability of |T| ≥ |t| by Student's distribution; of infinitely many degrees of freedom it is the normal one.
double student_p(double t, double freedom);
// The t that is exceeded with probability 1 - level, both ways.
double student_quantile(double level, double freedom);

// One side: a figure of each run, and how far each may be off as samples are counted (0: not at all).
struct Measured {
  std::vector<double> runs;
  std::vector<double> variances;
  double mean() const;
};

struct Difference {
  double before = 0, now = 0;  // means
  double error = 0;            // half the width of the interval that holds the true difference with probability `level`
  double p = 1;                // two-sided: that so large a difference comes about where there is none
  bool has_error = false;      // false: it is exact
  double change() const { return now - before; }
};

// By the variation between the runs of a side (Welch's test; where a side has one run, it varies as the other), which is taken to be no
// less than that of counting the samples. Where both sides have one run, by the latter alone.
Difference difference(const Measured& before, const Measured& now, double level);

// One run a side: did the rate of what is counted change? Of `x` events in so much time, before and now.
double count_p(double x_before, double time_before, double x_now, double time_now);

// By which part of themselves the shares of functions differ between two runs beyond what counting explains, where most functions have not
// changed: the σ for which the median of
//   ln² (now / before / typical) / (1 / before + 1 / now + σ²)
// is that of the square of a normal variable. 0 where fewer than ten functions have ten samples in each run.
struct Spread {
  double sigma = 0;
  double freedom = 1;  // how well it is known
};
Spread spread(std::span<const double> before, std::span<const double> now);

// And did a share of the samples change: `x` of `n`?
double share_p(double x_before, double n_before, double x_now, double n_now, const Spread& spread = {});

// For many tests at once, by Holm: with probability `level` or more, none of those whose p is at most 1 - level is a false alarm.
std::vector<double> corrected(std::vector<double> p);

}  // namespace weir::report
