// Better and worse are never added up, nor listed together: who looks for a regression must not find it hidden by an improvement.
#include "report/diff.h"

#include <algorithm>

#include "base/pattern.h"
#include "base/text.h"

namespace weir::report {
namespace {

using store::Cycles;
using store::Pair;

struct Change {
  const Pair* pair;
  Cycles self(bool now) const { return side(now) ? side(now)->self : 0; }
  Cycles total(bool now) const { return side(now) ? side(now)->total : 0; }
  uint64_t calls(bool now) const { return side(now) ? side(now)->calls : 0; }
  // Without OS time.
  Cycles code(bool now, store::OsTime os) const {
    if (!side(now) || side(now)->id == store::none) return 0;
    return side(now)->self - (os == store::OsTime::InSelf ? std::min(side(now)->self, side(now)->os_time) : 0);
  }
  int64_t change() const { return static_cast<int64_t>(self(true)) - static_cast<int64_t>(self(false)); }

 private:
  const store::FunctionRow* side(bool now) const {
    const std::optional<store::FunctionRow>& row = now ? pair->now : pair->before;
    return row ? &*row : nullptr;
  }
};

struct Lists {
  std::vector<Change> worse, better, added, gone;
};

Lists sort_out(const std::vector<Pair>& pairs) {
  Lists lists;
  for (const Pair& p : pairs) {
    Change c{&p};
    if (!p.before) lists.added.push_back(c);
    else if (!p.now) lists.gone.push_back(c);
    else if (c.change() > 0) lists.worse.push_back(c);
    else if (c.change() < 0) lists.better.push_back(c);
  }
  for (auto* list : {&lists.worse, &lists.better, &lists.added, &lists.gone})
    std::ranges::stable_sort(*list, std::ranges::greater(), [](const Change& c) { return std::abs(c.change()); });
  return lists;
}

std::string with_sign(int64_t n) {
  return (n < 0 ? "-" : n > 0 ? "+" : "") + with_unit(static_cast<uint64_t>(std::abs(n)));
}

double ratio(int64_t part, Cycles whole) { return whole ? static_cast<double>(part) / static_cast<double>(whole) : 0; }

std::string signed_percent(double fraction) { return fmt::format("{:+.2f} %", fraction * 100); }

void table(Output& out, const char* key, const char* title, const std::vector<Change>& list, Cycles whole, bool calls_known,
           uint64_t limit) {
  out.line();
  out.heading(title);
  out.table(key, {{"kind", nullptr, Kind::Label},
                  {"share", nullptr, Kind::Share},
                  {"", "of before", Kind::Label},
                  {"", "change", Kind::Label},
                  {"self_before", "self before", Kind::Cycles},
                  {"self", "self now", Kind::Cycles},
                  {"total_before", nullptr, Kind::Cycles},
                  {"total", nullptr, Kind::Cycles},
                  {"calls_before", calls_known ? "calls before" : nullptr, Kind::Count},
                  {"calls", calls_known ? "calls now" : nullptr, Kind::Count},
                  {"image", "image", Kind::Image},
                  {"name", "function", Kind::Name}});
  for (size_t i = 0; i < list.size() && i < limit; i++) {
    const Change& c = list[i];
    const store::FunctionRow& f = c.pair->either();
    double share = ratio(c.change(), whole);
    out.row({std::string(key), share, signed_percent(share), with_sign(c.change()), c.self(false), c.self(true),
             c.total(false), c.total(true), number_if(calls_known, c.calls(false)), number_if(calls_known, c.calls(true)),
             out.is_text() ? std::string(base_name(f.image)) : f.image, f.name});
  }
  if (list.empty()) out.row_line("  (none)");
  out.end_table(list.size() > limit ? list.size() - limit : 0);
}

void facts(Output& out, const char* key, const store::Reader& reader, const store::Totals& t, bool os_known) {
  out.begin_group(key);
  out.fact("file", reader.path());
  out.fact("total", t.all());
  out.fact("cycles", t.cycles);
  out.fact("os_time", number_if(os_known, t.os_time));
  out.end_group();
}

// What grew by more than `threshold` percent of the code before: the program, or the function that grew most. Whether it became
// worse with its OS time does not matter.
std::string beyond(const std::vector<Pair>& pairs, const store::Totals& before, const store::Totals& now,
                   const DiffOptions& options) {
  double most = *options.threshold / 100;
  double grown = ratio(static_cast<int64_t>(now.cycles) - static_cast<int64_t>(before.cycles), before.cycles);
  if (grown > most || (before.cycles == 0 && now.cycles > 0))
    return fmt::format("the code of the program grew by {}", signed_percent(grown));
  auto growth = [&](const Pair& p) {
    Change c{&p};
    return static_cast<int64_t>(c.code(true, options.os)) - static_cast<int64_t>(c.code(false, options.os));
  };
  auto worst = std::ranges::max_element(pairs, {}, growth);
  double share = worst == pairs.end() ? 0 : ratio(growth(*worst), before.cycles);
  if (share <= most) return "";
  return fmt::format("{} grew by {} of the program", shortened(worst->either().name, 80), signed_percent(share));
}

}  // namespace

Result<bool> show_diff(const store::Reader& before, const store::Reader& now, const DiffOptions& options, Output& out) {
  TRY(double scale, store::scale_of(now, before));
  TRY(profile::Run run_before, before.run());
  TRY(profile::Run run_now, now.run());
  bool is_sampled = run_now.sampling.has_value();
  TRY(std::vector<Pair> pairs, store::compare(now, before, options.os, scale));
  if (!options.filter.empty()) {
    Result<Pattern> pattern = Pattern::make(options.filter);
    if (!pattern) return fail("--filter {}", pattern.error().what);
    std::erase_if(pairs, [&](const Pair& p) { return !pattern->matches(p.either().name); });
  }
  TRY(store::Totals t_before, before.totals());
  TRY(store::Totals t_now, now.totals());
  for (Cycles* time : {&t_before.cycles, &t_before.os_time}) *time = store::scaled(*time, scale);
  Lists lists = sort_out(pairs);
  std::string found = options.threshold ? beyond(pairs, t_before, t_now, options) : "";

  out.begin("diff");
  facts(out, "before", before, t_before, !is_sampled);
  facts(out, "now", now, t_now, !is_sampled);
  out.fact("scale", scale);
  out.fact("beyond_threshold", found.empty() ? Cell() : Cell(found));
  out.heading(fmt::format("{} → {}", printable(before.path()), printable(now.path())));
  if (run_before.command != run_now.command)
    out.line(fmt::format("  the commands differ: {} and {}", shortened(quoted_command(run_before.command), 60),
                         shortened(quoted_command(run_now.command), 60)));
  if (run_now.clock == "cycles" && run_before.cpu != run_now.cpu)
    out.line(fmt::format("  the cycles are those of different CPUs: {} and {}", printable(run_before.cpu),
                         printable(run_now.cpu)));
  if (scale != 1)
    out.line(fmt::format("  samples were taken at different rates: those before are multiplied by {:.4g}", scale));
  auto line = [&](const char* what, Cycles a, Cycles b) {
    int64_t change = static_cast<int64_t>(b) - static_cast<int64_t>(a);
    out.line(fmt::format("  {:<12}{:>9} → {:>9}  {:>9}  {}", what, with_unit(a), with_unit(b), with_sign(change),
                         change ? signed_percent(ratio(change, a)) : "the same"));
  };
  line(is_sampled ? "samples" : "total", t_before.all(), t_now.all());
  if (!is_sampled) {
    line("  code", t_before.cycles, t_now.cycles);
    line("  OS calls", t_before.os_time, t_now.os_time);
  }
  uint64_t limit = options.limit.value_or(out.is_text() ? 15 : 0);
  if (limit == 0) limit = UINT64_MAX;
  auto show = [&](const char* key, const char* title, const std::vector<Change>& list) {
    table(out, key, title, list, t_before.all(), !is_sampled, limit);
  };
  show("worse", is_sampled ? "worse: more samples than before" : "worse: more self time than before", lists.worse);
  show("better", is_sampled ? "better: fewer samples" : "better: less self time", lists.better);
  show("new", is_sampled ? "new: not seen before" : "new: did not run before", lists.added);
  show("gone", is_sampled ? "gone: seen before" : "gone: ran before", lists.gone);
  if (options.threshold) {
    out.line();
    out.line(found.empty() ? fmt::format("nothing grew by more than {} %", *options.threshold)
                           : fmt::format("beyond {} %: {}", *options.threshold, found));
  }
  TRY_VOID(out.end());
  return !found.empty();
}

}  // namespace weir::report
