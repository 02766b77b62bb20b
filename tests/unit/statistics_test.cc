// The statistics of weir diff, against tables and against simulated runs: how often a difference is seen that is not there, and how often
// one that is.
#include "report/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

namespace weir::report {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

// Abramowitz and Stegun, table 26.10, and the normal distribution.
TEST(Statistics, Student) {
  EXPECT_NEAR(student_p(63.657, 1), 0.01, 1e-5);
  EXPECT_NEAR(student_p(9.925, 2), 0.01, 1e-5);
  EXPECT_NEAR(student_p(4.604, 4), 0.01, 1e-5);
  EXPECT_NEAR(student_p(2.750, 30), 0.01, 1e-5);
  EXPECT_NEAR(student_p(1.960, inf), 0.05, 1e-4);
  EXPECT_NEAR(student_quantile(0.95, 10), 2.228, 1e-3);
  EXPECT_NEAR(student_quantile(0.99, inf), 2.576, 1e-3);
  EXPECT_EQ(student_p(0, 3), 1);
}

// P(X ≥ 9) of ten tosses of a coin is 11/1024, and both ways twice that.
TEST(Statistics, Counts) {
  EXPECT_NEAR(count_p(1, 1, 9, 1), 22.0 / 1024, 1e-12);
  EXPECT_NEAR(count_p(9, 1, 1, 1), 22.0 / 1024, 1e-12);
  EXPECT_EQ(count_p(5, 1, 5, 1), 1);
  EXPECT_NEAR(count_p(0, 1, 2, 3), 1, 1e-12);  // nine of sixteen times by chance
  EXPECT_EQ(count_p(0, 1, 0, 1), 1);
  EXPECT_LT(count_p(1'000'000, 1, 1'010'000, 1), 1e-10);
  EXPECT_GT(count_p(1'000'000, 1, 1'001'000, 1), 0.3);
}

TEST(Statistics, Corrected) {
  EXPECT_EQ(corrected({0.01, 0.04, 0.03}), (std::vector<double>{0.03, 0.06, 0.06}));
  EXPECT_EQ(corrected({0.5, 0.9}), (std::vector<double>{1, 1}));
  EXPECT_TRUE(corrected({}).empty());
}

TEST(Statistics, ExactFiguresHaveNoError) {
  Difference same = difference({{7, 7, 7}, {0, 0, 0}}, {{7}, {0}}, 0.99);
  EXPECT_EQ(same.p, 1);
  Difference other = difference({{7, 7}, {0, 0}}, {{8, 8}, {0, 0}}, 0.99);
  EXPECT_EQ(other.p, 0);
  EXPECT_FALSE(other.has_error);
  EXPECT_EQ(other.change(), 1);
}

// How often `test` says yes, of 4,000 times; with a seed, so that every machine tosses the same.
double rate_of(const std::function<bool(std::mt19937_64&)>& test) {
  std::mt19937_64 random(42);
  int yes = 0;
  constexpr int times = 4000;
  for (int i = 0; i < times; i++) yes += test(random);
  return static_cast<double>(yes) / times;
}

double poisson(std::mt19937_64& random, double mean) {
  return mean > 0 ? static_cast<double>(std::poisson_distribution<int64_t>(mean)(random)) : 0;
}

// Runs of `time` CPU seconds, 1,000 samples each, that take up to `spread` more or less.
Measured runs_of(std::mt19937_64& random, size_t n, double time, double spread) {
  Measured m;
  for (size_t i = 0; i < n; i++) {
    double samples = poisson(random, 1000 * time * std::exp(spread * std::normal_distribution<>()(random)));
    m.runs.push_back(samples);
    m.variances.push_back(samples);
  }
  return m;
}

TEST(Statistics, RunsThatVary) {
  auto differs = [](size_t n, double spread, double by) {
    return rate_of([=](auto& random) {
      return difference(runs_of(random, n, 5, spread), runs_of(random, n, 5 * by, spread), 0.99).p <= 0.01;
    });
  };
  for (double spread : {0.0, 0.02, 0.3}) EXPECT_LE(differs(3, spread, 1), 0.015) << spread;
  EXPECT_LE(differs(8, 0.3, 1), 0.015);
  // A fifth slower is seen, by three runs a side that vary by two in a hundred, or by ten that vary by eight.
  EXPECT_GE(differs(3, 0.01, 1.2), 0.97);
  EXPECT_GE(differs(5, 0.03, 1.2), 0.97);
  EXPECT_GE(differs(10, 0.08, 1.2), 0.95);
  // One run against several varies as they do.
  auto one_against = [](double by) {
    return rate_of([=](auto& random) {
      return difference(runs_of(random, 5, 5, 0.05), runs_of(random, 1, 5 * by, 0.05), 0.99).p <= 0.01;
    });
  };
  EXPECT_LE(one_against(1), 0.015);
  EXPECT_GE(one_against(2), 0.95);
}

// The interval holds what is true as often as it says.
TEST(Statistics, Intervals) {
  double holds = rate_of([](auto& random) {
    Difference d = difference(runs_of(random, 4, 5, 0.1), runs_of(random, 4, 6, 0.1), 0.95);
    return std::abs(d.change() - 1000 * std::exp(0.005)) <= d.error;
  });
  EXPECT_GE(holds, 0.94);
}

// Two sampled runs with forty functions, of shares as 1, 1/2, 1/3 …; the second under a load that makes all of it slower, and some of it more so.
struct Samples {
  std::vector<double> before, now;
  double all_before = 0, all_now = 0;
};
Samples two_runs(std::mt19937_64& random, double load, double uneven, double first = 1) {
  Samples s;
  for (int i = 0; i < 40; i++) {
    double mean = 3000.0 / (i + 1);
    s.before.push_back(poisson(random, mean));
    double own = std::exp(uneven * std::normal_distribution<>()(random));
    s.now.push_back(poisson(random, mean * load * own * (i == 0 ? first : 1)));
    s.all_before += s.before.back(), s.all_now += s.now.back();
  }
  return s;
}
bool any_share_differs(const Samples& s) {
  std::vector<double> p;
  Spread more = spread(s.before, s.now);
  for (size_t i = 0; i < s.before.size(); i++) p.push_back(share_p(s.before[i], s.all_before, s.now[i], s.all_now, more));
  p = corrected(p);
  return std::ranges::any_of(p, [](double one) { return one <= 0.01; });
}

TEST(Statistics, SharesOfTwoRuns) {
  for (double load : {1.0, 1.62, 0.5})
    EXPECT_LE(rate_of([=](auto& random) { return any_share_differs(two_runs(random, load, 0)); }), 0.015) << load;
  // Shares that a load pushes about by so much each: from two runs nobody knows exactly how much that is.
  for (double uneven : {0.02, 0.05, 0.1, 0.3})
    EXPECT_LE(rate_of([=](auto& random) { return any_share_differs(two_runs(random, 1.3, uneven)); }), 0.06) << uneven;
  // One function that takes twice as much is seen, on a machine under load, too.
  EXPECT_GE(rate_of([](auto& random) { return any_share_differs(two_runs(random, 1.62, 0, 2)); }), 0.95);
  EXPECT_GE(rate_of([](auto& random) { return any_share_differs(two_runs(random, 1.62, 0.05, 2)); }), 0.8);
}

TEST(Statistics, Spread) {
  std::mt19937_64 random(1);
  auto mean_of = [&](double uneven) {
    double sum = 0;
    for (int i = 0; i < 200; i++) {
      Samples s = two_runs(random, 1.5, uneven);
      sum += spread(s.before, s.now).sigma;
    }
    return sum / 200;
  };
  EXPECT_LT(mean_of(0), 0.03);  // (it is never told as less than 0)
  EXPECT_NEAR(mean_of(0.2), 0.2, 0.04);
  EXPECT_EQ(spread(std::vector<double>{90, 90}, std::vector<double>{90, 900}).sigma, 0);  // too few functions to tell
}

}  // namespace
}  // namespace weir::report
