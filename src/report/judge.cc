#include "report/judge.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/pattern.h"
#include "base/text.h"

namespace weir::report {
namespace {

using store::Pair;

// Functions with a smaller part of the whole are not tested: each test makes all others weaker. (The part is that of both sides together,
// which does not tell in what direction they differ.)
constexpr double least_share = 0.001;
constexpr double least_samples = 8;

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

Measured measured(const std::vector<store::Cycles>& code, const std::vector<double>& scales, bool is_sampled) {
  Measured m;
  for (size_t run = 0; run < scales.size(); run++) {
    double figure = run < code.size() ? static_cast<double>(code[run]) : 0;
    m.runs.push_back(figure);
    m.variances.push_back(is_sampled ? figure * scales[run] : 0);
  }
  return m;
}

class Judge {
 public:
  Judge(const Figures& figures, const Rules& rules) : figures_(figures), rules_(rules) {
    result_.basis = figures.basis;
    result_.whole = difference(figures.before.code, figures.now.code, rules.level / 100);
    bool whole_has_known_error = figures.basis == Basis::Exact || figures.basis == Basis::Runs;
    result_.judges_whole = rules.filter.empty() && (whole_has_known_error || rules.totals);
    result_.judges_functions =
        rules.per_function || !rules.filter.empty() || (figures.basis == Basis::Counts && !rules.totals);
  }

  Judgement of(const std::vector<Pair>& pairs) {
    for (const Pair& p : pairs) changes_.push_back(change(p));
    if (figures_.basis == Basis::Runs) test_runs();
    if (figures_.basis == Basis::Counts) test_shares();
    sort_out();
    if (rules_.threshold) find_beyond();
    return std::move(result_);
  }

 private:
  Change change(const Pair& p) const {
    Change c;
    c.pair = &p;
    c.self = difference(measured(p.code_before, figures_.scale_before, figures_.is_sampled),
                        measured(p.code_now, figures_.scale_now, figures_.is_sampled), rules_.level / 100);
    c.share_before = ratio(c.self.before, result_.whole.before);
    c.share_now = ratio(c.self.now, result_.whole.now);
    c.growth =
        figures_.basis == Basis::Counts ? c.share_now - c.share_before : ratio(c.self.change(), result_.whole.before);
    return c;
  }

  // Gives each of these its p, corrected for all of them; the others are within their errors.
  template <class P>
  void test(P p_of, const std::vector<bool>& is_tested) {
    std::vector<double> p;
    for (size_t i = 0; i < changes_.size(); i++)
      if (is_tested[i]) p.push_back(p_of(changes_[i]));
    p = corrected(std::move(p));
    result_.tests = p.size();
    size_t at = 0;
    for (size_t i = 0; i < changes_.size(); i++) {
      Change& c = changes_[i];
      if (is_tested[i]) c.p = p[at++];
      c.is_certain = is_tested[i] && *c.p <= rules_.error_rate();
    }
  }

  void test_runs() {
    std::vector<bool> is_tested;
    for (const Change& c : changes_) {
      bool is_exact = !c.self.has_error && c.self.change() != 0;
      is_tested.push_back(c.pair->is_code() && (is_exact || (c.share_before + c.share_now) / 2 >= least_share));
    }
    test([](const Change& c) { return c.self.p; }, is_tested);
  }

  // A load on the machine changes times and not shares, a gain elsewhere shares and not times. So what became worse has a larger share, and
  // took more time: the larger p of both.
  void test_shares() {
    double scale = figures_.scale_before.front() / figures_.scale_now.front();  // rate now by rate before
    auto counted = [&](const Change& c) { return std::pair(c.self.before / scale, c.self.now); };
    std::vector<double> before, now;
    std::vector<bool> is_tested;
    for (const Change& c : changes_) {
      auto [b, n] = counted(c);
      before.push_back(b), now.push_back(n);
      is_tested.push_back(b + n >= least_samples);
    }
    result_.spread = spread(before, now);
    double all_before = result_.whole.before / scale, all_now = result_.whole.now;
    test(
        [&](const Change& c) {
          auto [b, n] = counted(c);
          if (std::signbit(c.growth) != std::signbit(c.self.change())) return 1.0;
          return std::max(share_p(b, all_before, n, all_now, result_.spread), count_p(b, 1, n, scale));
        },
        is_tested);
  }

  std::vector<Change>& list_of(const Change& c) {
    bool is_error_free = figures_.basis == Basis::Exact || figures_.basis == Basis::Clock;
    if (!is_error_free && !c.is_certain) {
      bool is_other = c.pair->is_renamed || c.pair->is_moved;
      return is_other ? result_.renamed : result_.unclear;
    }
    if (!c.pair->before) return result_.added;
    if (!c.pair->now) return result_.gone;
    return c.self.change() > 0 ? result_.worse : c.self.change() < 0 ? result_.better : result_.renamed;
  }

  void sort_out() {
    for (const Change& c : changes_) {
      std::vector<Change>& list = list_of(c);
      bool is_other = c.pair->is_renamed || c.pair->is_moved || !c.pair->before || !c.pair->now;
      if (c.self.change() != 0 || is_other) list.push_back(c);
    }
    for (auto* list : {&result_.worse, &result_.better, &result_.added, &result_.gone, &result_.unclear})
      std::ranges::stable_sort(*list, std::ranges::greater(), [](const Change& c) { return std::abs(c.growth); });
    std::ranges::stable_sort(result_.renamed, std::ranges::greater(), [](const Change& c) { return c.self.now; });
  }

  // By how much the program would have grown by this function alone. Of shares: with the others as they were, p₁ = (p₀ + g) / (1 + g); no
  // more than its time did.
  double growth_of_program(const Change& c) const {
    if (figures_.basis != Basis::Counts) return c.growth;
    double by_time = ratio(c.self.change(), result_.whole.before);
    return std::min(by_time, c.share_now < 1 ? c.growth / (1 - c.share_now) : c.growth);
  }

  void find_beyond() {
    double most = *rules_.threshold / 100;
    if (result_.judges_whole && result_.grown() > most && result_.whole_is_certain(rules_))
      result_.beyond.push_back(fmt::format("the code of the program grew by {}", signed_percent(result_.grown())));
    if (!result_.judges_functions) return;
    for (const auto* list : {&result_.worse, &result_.added})
      for (const Change& c : *list)
        if (double growth = growth_of_program(c); c.pair->is_code() && growth > most)
          result_.beyond.push_back(
              fmt::format("{} grew by {} of the program", shortened(c.pair->either().name, 80), signed_percent(growth)));
  }

  const Figures& figures_;
  const Rules& rules_;
  Judgement result_;
  std::vector<Change> changes_;
};

}  // namespace

double Side::sum() const { return std::accumulate(code.runs.begin(), code.runs.end(), 0.0); }
double Side::all() const {
  double os = std::accumulate(os_time.begin(), os_time.end(), 0.0);
  return code.runs.empty() ? 0 : (sum() + os) / static_cast<double>(code.runs.size());
}

Result<Judgement> judge(const std::vector<Pair>& pairs, const Figures& figures, const Rules& rules) {
  return Judge(figures, rules).of(pairs);
}

std::string signed_percent(double fraction) {
  double percent = fraction * 100;
  int digits = 2;  // or as many as are needed to see something
  if (percent != 0 && std::abs(percent) < 0.005)
    digits = std::min(static_cast<int>(std::ceil(-std::log10(std::abs(percent)))), 9);
  return fmt::format("{:+.{}f} %", percent, digits);
}

}  // namespace weir::report
