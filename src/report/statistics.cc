// Abramowitz and Stegun, Handbook of Mathematical Functions, 26.5.8 and 26.7.1; Welch, Biometrika 34 (1947); Holm, Scandinavian Journal of
// Statistics 6 (1979).
#include "report/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace weir::report {
namespace {

// The regularized incomplete beta function I_x(a, b), by its continued fraction.
double incomplete_beta(double x, double a, double b) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incomplete_beta(1 - x, b, a);
  constexpr double tiny = 1e-300;
  auto kept = [](double v) { return std::abs(v) < tiny ? tiny : v; };
  double c = 1, d = 1 / kept(1 - (a + b) * x / (a + 1)), f = d;
  for (int i = 1; i < 10000; i++) {
    double m = i;
    double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    for (double term : {even, odd}) {
      d = 1 / kept(1 + term * d);
      c = kept(1 + term / c);
      f *= d * c;
    }
    if (std::abs(d * c - 1) < 1e-14) break;
  }
  double front = std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x);
  return std::exp(front) * f / a;
}

double normal_p(double z) { return std::erfc(std::abs(z) / std::sqrt(2.0)); }

// The z whose two-sided probability is p.
double normal_z(double p) {
  double low = 0, high = 40;
  for (int i = 0; i < 100; i++) {
    double middle = (low + high) / 2;
    (normal_p(middle) > p ? low : high) = middle;
  }
  return low;
}

double sum_of(const std::vector<double>& v) { return std::accumulate(v.begin(), v.end(), 0.0); }

double squares_of(const Measured& m) {
  double mean = m.mean(), sum = 0;
  for (double x : m.runs) sum += (x - mean) * (x - mean);
  return sum;
}

// Of the mean of one side.
struct MeanVariance {
  double variance = 0, freedom = 0;
};

MeanVariance variance_of(const Measured& m, const Measured& other) {
  double n = static_cast<double>(m.runs.size()), counted = sum_of(m.variances) / n;
  if (m.runs.size() > 1) return {std::max(squares_of(m) / (n - 1), counted) / n, n - 1};
  double others = static_cast<double>(other.runs.size());
  if (other.runs.size() > 1) return {std::max(squares_of(other) / (others - 1), counted), others - 1};
  return {counted, std::numeric_limits<double>::infinity()};
}

}  // namespace

double student_p(double t, double freedom) {
  if (std::isinf(freedom)) return normal_p(t);
  if (std::isinf(t)) return 0;
  return incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5);
}

double student_quantile(double level, double freedom) {
  double low = 0, high = 1;
  while (student_p(high, freedom) > 1 - level && high < 1e12) high *= 2;
  for (int i = 0; i < 100; i++) {
    double middle = (low + high) / 2;
    (student_p(middle, freedom) > 1 - level ? low : high) = middle;
  }
  return high;
}

double Measured::mean() const { return runs.empty() ? 0 : sum_of(runs) / static_cast<double>(runs.size()); }

Difference difference(const Measured& before, const Measured& now, double level) {
  Difference d{before.mean(), now.mean()};
  MeanVariance a = variance_of(before, now), b = variance_of(now, before);
  double variance = a.variance + b.variance;
  if (variance <= 0) {
    d.p = d.change() == 0 ? 1 : 0;
    return d;
  }
  double freedom = variance * variance / (a.variance * a.variance / a.freedom + b.variance * b.variance / b.freedom);
  // Where one side lends its variation to the other, both rest on the same runs.
  if (before.runs.size() == 1 || now.runs.size() == 1) freedom = std::max(a.freedom, b.freedom);
  d.has_error = true;
  d.error = student_quantile(level, freedom) * std::sqrt(variance);
  d.p = student_p(d.change() / std::sqrt(variance), freedom);
  return d;
}

double count_p(double x_before, double time_before, double x_now, double time_now) {
  double x = x_before + x_now, q = time_now / (time_before + time_now);
  if (time_before <= 0 || time_now <= 0 || x <= 0) return 1;
  // Of x events, so many fell into the run now: binomial, P(X ≥ k) = I_q(k, x - k + 1).
  double at_least = x_now > 0 ? incomplete_beta(q, x_now, x_before + 1) : 1;
  double at_most = x_before > 0 ? incomplete_beta(1 - q, x_before, x_now + 1) : 1;
  return std::min(1.0, 2 * std::min(at_least, at_most));
}

double share_p(double x_before, double n_before, double x_now, double n_now, const Spread& spread) {
  double n = n_before + n_now, share = (x_before + x_now) / n;
  if (n_before <= 0 || n_now <= 0 || share <= 0 || share >= 1) return 1;
  double p;
  constexpr double many = 100;  // from here on shares are as good as normal, and large ones vary by less than counts
  if (std::min(share * n_before, share * n_now) >= many)
    p = normal_p((x_now / n_now - x_before / n_before) / std::sqrt(share * (1 - share) * (1 / n_before + 1 / n_now)));
  else p = count_p(x_before, n_before, x_now, n_now);
  if (spread.sigma <= 0) return p;
  // Of the variance one part is known, the other estimated: as in Welch's test, that decides the degrees of freedom.
  // (In the logarithm of x / (n - x), which a larger or smaller x changes as much as its own logarithm.)
  double counted = (1 / n_before + 1 / n_now) / (share * (1 - share)), added = spread.sigma * spread.sigma,
         all = counted + added;
  double freedom = all * all / (added * added / spread.freedom);
  return student_p(normal_z(p) / std::sqrt(all / counted), freedom);
}

Spread spread(std::span<const double> before, std::span<const double> now) {
  constexpr double least_samples = 10;
  constexpr size_t least_functions = 10;
  struct Ratio {
    double log, weight, counted;
  };
  std::vector<Ratio> ratios;
  double weight = 0;
  for (size_t i = 0; i < before.size(); i++) {
    if (before[i] < least_samples || now[i] < least_samples) continue;
    ratios.push_back({std::log(now[i] / before[i]), before[i] + now[i], 1 / before[i] + 1 / now[i]});
    weight += before[i] + now[i];
  }
  if (ratios.size() < least_functions) return {};
  std::ranges::sort(ratios, {}, &Ratio::log);
  double typical = 0, so_far = 0;  // the median, by weight
  for (const Ratio& r : ratios) {
    typical = r.log;
    if ((so_far += r.weight) >= weight / 2) break;
  }
  auto median = [&](double variance) {
    std::vector<double> squares;
    for (const Ratio& r : ratios) squares.push_back((r.log - typical) * (r.log - typical) / (r.counted + variance));
    std::ranges::nth_element(squares, squares.begin() + static_cast<ptrdiff_t>(squares.size() / 2));
    return squares[squares.size() / 2];
  };
  constexpr double median_of_normal = 0.4549;
  // A median tells as much of a variance as 0.37 times as many values do by their squares.
  double freedom = 0.37 * static_cast<double>(ratios.size());
  double low = 0, high = 100;
  if (median(0) <= median_of_normal) return {0, freedom};
  for (int i = 0; i < 60; i++) {
    double middle = (low + high) / 2;
    (median(middle) > median_of_normal ? low : high) = middle;
  }
  return {std::sqrt(high), freedom};
}

std::vector<double> corrected(std::vector<double> p) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](size_t i) { return p[i]; });
  double least = 0;
  for (size_t k = 0; k < order.size(); k++) {
    least = std::max(least, std::min(1.0, p[order[k]] * static_cast<double>(p.size() - k)));
    p[order[k]] = least;
  }
  return p;
}

}  // namespace weir::report
