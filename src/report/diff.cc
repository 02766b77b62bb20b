// The verdict first, then what it rests on. Better and worse are never added up, nor listed together: who looks for a regression must not
// find it hidden by an improvement.
#include "report/diff.h"

#include <algorithm>
#include <cmath>

#include "base/pattern.h"
#include "base/text.h"

namespace weir::report {
namespace {

using store::Cycles;
using store::Pair;

Cycles rounded(double figure) { return static_cast<Cycles>(std::llround(std::max(figure, 0.0))); }

// A part of the whole that no reader would act on.
constexpr double negligible = 1e-4;

std::string plain_percent(double percent) { return fmt::format("{:.4g} %", percent); }

// Everything about two sides but their functions.
struct Sides {
  const Readers &before, &now;
  profile::Run run_before = {}, run_now = {};
  Figures figures = {};
  bool is_sampled() const { return run_now.sampling.has_value(); }
  bool is_time() const { return is_sampled() && run_now.sampling->rate > 0; }
  bool has_no_samples() const { return is_sampled() && figures.before.sum() + figures.now.sum() == 0; }
  bool is_several() const { return before.size() > 1 || now.size() > 1; }

  static Result<Sides> load(const Readers& before, const Readers& now) {
    Sides s{before, now};
    TRY(s.run_before, before.front()->run());
    TRY(s.run_now, now.front()->run());
    for (bool is_now : {false, true}) {
      Side& side = is_now ? s.figures.now : s.figures.before;
      for (const store::Reader* run : is_now ? now : before) {
        TRY(double scale, store::scale_of(*now.front(), *run));
        TRY(store::Totals totals, run->totals());
        (is_now ? s.figures.scale_now : s.figures.scale_before).push_back(scale);
        double code = static_cast<double>(totals.cycles) * scale;
        side.code.runs.push_back(code);
        side.code.variances.push_back(s.is_sampled() ? code * scale : 0);
        side.os_time.push_back(static_cast<double>(totals.os_time) * scale);
      }
    }
    s.figures.is_sampled = s.is_sampled();
    s.figures.basis = s.is_several()              ? Basis::Runs
                      : s.is_sampled()            ? Basis::Counts
                      : s.run_now.clock == "wall" ? Basis::Clock
                                                  : Basis::Exact;
    return s;
  }

  // What is counted, as a figure and in words.
  std::string figure(double n) const { return is_time() ? in_seconds(n / run_now.sampling->rate) : with_unit(rounded(n)); }
  std::string what() const {
    if (is_time()) return run_now.sampling->event == "wall" ? "wall time" : "CPU time";
    if (is_sampled()) return "samples of " + shortened(run_now.sampling->event, 40);
    return run_now.clock == "instructions" ? "instructions" : "cycles of code";
  }
  bool is_speed() const { return is_time() || (!is_sampled() && run_now.clock != "instructions"); }
  std::string runs() const {
    auto count = [](size_t n) { return fmt::format("{} run{}", n, n == 1 ? "" : "s"); };
    return fmt::format("{} and {}", count(before.size()), count(now.size()));
  }
};

// "slower by 12.34 % ± 2.10 %: 5.020 s → 6.030 s of CPU time".
std::string words_for(const Judgement& j, const Sides& s, const Rules& rules) {
  const Difference& d = j.whole;
  std::string figures =
      fmt::format("{} → {} {}{}", s.figure(d.before), s.figure(d.now), s.is_time() ? "of " : "", s.what());
  std::string error = d.has_error && d.before > 0 ? fmt::format(" ± {:.2f} %", 100 * d.error / d.before) : "";
  std::string level = d.has_error ? fmt::format(" ({}, level {})", s.runs(), plain_percent(rules.level)) : "";
  if (d.change() == 0) return fmt::format("the same: {} {}", s.figure(d.now), s.what());
  if (!j.whole_is_certain(rules))
    return fmt::format("no certain difference: {}{}{}: {}", signed_percent(j.grown()), error, level, figures);
  bool is_worse = d.change() > 0;
  if (d.before > 0 && std::abs(j.grown()) < negligible / 2 && (!rules.threshold || j.beyond.empty()))
    return fmt::format("as good as the same ({}): {} {}", signed_percent(j.grown()), s.figure(d.now), s.what());
  const char* word = s.is_speed() ? (is_worse ? "slower" : "faster") : is_worse ? "more" : "fewer";
  if (d.before <= 0) return fmt::format("{}: {}", word, figures);
  return fmt::format("{} by {}{}{}: {}", word, signed_percent(std::abs(j.grown())).substr(1), error, level, figures);
}

std::string counted_functions(size_t n) {
  return fmt::format("{} function{}", n ? with_commas(n) : "no", n == 1 ? "" : "s");
}

std::string words_for_shares(const Judgement& j, const Rules& rules) {
  size_t larger = j.worse.size() + j.added.size(), smaller = j.better.size() + j.gone.size();
  std::string verdict =
      larger + smaller == 0
          ? fmt::format("no certain difference: the shares of all functions are the same within their errors (level {})",
                        plain_percent(rules.level))
          : fmt::format("{} with a larger share of the time, {} with a smaller one (level {})", counted_functions(larger),
                        larger + smaller ? std::to_string(smaller) : "none", plain_percent(rules.level));
  return verdict + "; the whole is not judged by one sampled run a side";
}

std::string verdict_of(const Judgement& j, const Sides& s, const Rules& rules) {
  std::string words;
  if (s.has_no_samples()) {
    words = "nothing was compared, as no run has a sample";
    if (s.is_time()) words += "; sample more often: weir sample -F 20000";
    return rules.threshold ? fmt::format("the threshold was not tried: {}", words) : words;
  }
  if (!j.beyond.empty() && j.beyond.front().starts_with("the code of the program")) words = words_for(j, s, rules);
  else if (!j.beyond.empty())
    words = j.beyond.front() + (j.beyond.size() > 1 ? fmt::format(", and {} more", j.beyond.size() - 1) : "");
  else if (!rules.filter.empty())
    words = fmt::format("of those that match, {} became worse", counted_functions(j.worse.size() + j.added.size()));
  else if (j.judges_whole) words = words_for(j, s, rules);
  else if (j.basis == Basis::Counts) words = words_for_shares(j, rules);
  else
    words =
        fmt::format("one run a side is not judged, as clocks differ from run to run (take several, or --totals): {} → {}",
                    s.figure(j.whole.before), s.figure(j.whole.now));
  if (!rules.threshold) return words;
  if (!j.judges_whole && !j.judges_functions) return fmt::format("the threshold was not tried: {}", words);
  return fmt::format("{} the threshold of {}: {}", j.beyond.empty() ? "within" : "beyond", plain_percent(*rules.threshold),
                     words);
}

std::string side_name(const Readers& side) {
  std::string name = printable(side.front()->path());
  return side.size() > 1 ? fmt::format("{} and {} more", name, side.size() - 1) : name;
}

void facts(Output& out, const char* key, const Readers& readers, const Side& side, bool os_known) {
  out.begin_group(key);
  out.fact("file", readers.front()->path());
  std::vector<std::string> files;
  for (const store::Reader* r : readers) files.push_back(r->path());
  out.fact("files", files);
  double runs = static_cast<double>(readers.size());
  out.fact("total", rounded(side.all()));
  out.fact("cycles", rounded(side.sum() / runs));
  out.fact("os_time", number_if(os_known, rounded(side.all() - side.sum() / runs)));
  out.end_group();
}

void totals_in_text(Output& out, const Sides& s, const Judgement& j) {
  auto line = [&](const char* what, double a, double b) {
    std::string change = a == b ? "the same" : a > 0 ? signed_percent((b - a) / a) : "new";
    out.line(fmt::format("  {:<10}{:>10} → {:>10}  {}", what, s.figure(a), s.figure(b), change));
  };
  const Side &before = s.figures.before, &now = s.figures.now;
  double os_before = before.all() - j.whole.before, os_now = now.all() - j.whole.now;
  if (s.is_sampled()) {
    line(s.is_time() ? "time" : "samples", j.whole.before, j.whole.now);
  } else {
    line("code", j.whole.before, j.whole.now);
    if (os_before > 0 || os_now > 0) line("OS calls", os_before, os_now);
  }
  if (!s.is_several()) return;
  auto runs = [&](const Side& side) {
    constexpr size_t most = 8;
    std::string text;
    for (size_t i = 0; i < side.code.runs.size() && i < most; i++) text += (i ? ", " : "") + s.figure(side.code.runs[i]);
    return text + (side.code.runs.size() > most ? ", …" : "");
  };
  out.line(fmt::format("  {:<10}{} → {}", "runs", runs(before), runs(now)));
}

// What may make the comparison another than the one that was meant.
std::vector<std::string> notes_for(const Sides& s, const store::Match& match) {
  std::vector<std::string> notes;
  const profile::Run &before = s.run_before, &now = s.run_now;
  if (before.command != now.command)
    notes.push_back(fmt::format("the commands differ: {} and {}", shortened(quoted_command(before.command), 60),
                                shortened(quoted_command(now.command), 60)));
  if (now.clock == "cycles" && before.cpu != now.cpu)
    notes.push_back(
        fmt::format("the cycles are those of different CPUs: {} and {}", printable(before.cpu), printable(now.cpu)));
  if (!s.is_several() && s.figures.scale_before.front() != 1)
    notes.push_back(fmt::format("samples were taken at different rates: those before are multiplied by {:.4g}",
                                s.figures.scale_before.front()));
  if (before.os_model != now.os_model && s.before.front()->tells_waits() && s.now.front()->tells_waits())
    notes.push_back(fmt::format("OS time differs in kind: before by --os-model={}, now by --os-model={}",
                                printable(before.os_model), printable(now.os_model)));
  for (const Readers* side : {&s.before, &s.now})
    for (const store::Reader* run : *side)
      if (!run->tells_waits() && !s.is_sampled())
        notes.push_back(
            fmt::format("{} is of an older Weir: its OS time includes what was waited", printable(run->path())));
  if (!match.without_lines.empty())
    notes.push_back(fmt::format("inlined functions are part of their callers: {} has no debug information",
                                printable(match.without_lines)));
  constexpr size_t most = 6;
  for (size_t i = 0; i < match.renamed_images.size() && i < most; i++) {
    const store::ImagePair& image = match.renamed_images[i];
    notes.push_back(fmt::format("{} is compared with {}: {}", printable(base_name(image.now)),
                                printable(base_name(image.before)), image.why));
  }
  if (match.renamed_images.size() > most)
    notes.push_back(fmt::format("so are {} more images", match.renamed_images.size() - most));
  return notes;
}

std::string match_of(const Pair& p) {
  if (!p.before || !p.now) return "";
  if (p.is_renamed) return p.is_moved ? "renamed and moved" : "renamed";
  return p.is_moved ? "moved" : "same";
}

// "parse (was parse_all)", "parse (was in libfoo.so)".
std::string name_with_history(const Pair& p) {
  const store::FunctionRow& f = p.either();
  if (!p.before || !p.now || (!p.is_renamed && !p.is_moved)) return f.name;
  std::string was = p.is_renamed ? shortened(p.before->name, 60) : "";
  if (p.is_moved) was += fmt::format("{}in {}", was.empty() ? "" : " ", base_name(p.before->image));
  return fmt::format("{} (was {})", f.name, was);
}

class Tables {
 public:
  Tables(Output& out, const Sides& s, const Judgement& j, uint64_t limit) : out_(out), s_(s), j_(j), limit_(limit) {}

  void show(const char* key, const char* title, const std::vector<Change>& list) {
    bool is_prose = out_.is_text() || out_.is_markdown();
    if (is_prose && list.empty()) return;
    size_t rows = std::min<size_t>(list.size(), limit_);
    while (is_prose && rows > 0 && limit_ != UINT64_MAX && !matters(list[rows - 1])) rows--;
    out_.line();
    if (is_prose && rows == 0) {
      out_.line(fmt::format("{}: {}, by less than {} of the whole each (--limit 0 lists them)", key,
                            counted_functions(list.size()), plain_percent(100 * negligible)));
      return;
    }
    out_.heading(title);
    out_.table(key, columns());
    for (size_t i = 0; i < rows; i++) row(key, list[i]);
    out_.end_table(list.size() - rows);
  }

 private:
  // What renamed functions do is no change.
  static bool matters(const Change& c) {
    return std::abs(c.growth) >= negligible || (c.pair->before && c.pair->now && (c.pair->is_renamed || c.pair->is_moved));
  }
  std::vector<Column> columns() const {
    bool calls = !s_.is_sampled(), text = !out_.is_markdown();
    bool with_error = j_.basis == Basis::Runs && j_.whole.has_error;
    return {{"kind", nullptr, Kind::Label},
            {"share", nullptr, Kind::Share},
            {"", "change", Kind::Label},
            {"", with_error ? "±" : nullptr, Kind::Label},
            {"share_before", "before %", Kind::Share},
            {"share_now", "now %", Kind::Share},
            {"self_before", text ? "self before" : nullptr, Kind::Cycles},
            {"self", text ? "self now" : nullptr, Kind::Cycles},
            {"error", nullptr, Kind::Cycles},
            {"p", nullptr, Kind::Share},
            {"total_before", nullptr, Kind::Cycles},
            {"total", nullptr, Kind::Cycles},
            {"os_time_before", nullptr, Kind::Cycles},
            {"os_time", nullptr, Kind::Cycles},
            {"calls_before", calls && text ? "calls before" : nullptr, Kind::Count},
            {"calls", calls && text ? "calls now" : nullptr, Kind::Count},
            {"match", nullptr, Kind::Label},
            {"similarity", nullptr, Kind::Share},
            {"image_before", nullptr, Kind::Image},
            {"name_before", nullptr, Kind::Name},
            {"image", "image", Kind::Image},
            {"name", "function", Kind::Name}};
  }

  void row(const char* key, const Change& c) {
    const Pair& p = *c.pair;
    const store::FunctionRow& f = p.either();
    bool is_exact = !s_.is_sampled(), is_prose = out_.is_text() || out_.is_markdown();
    auto of = [](const std::optional<store::FunctionRow>& row, auto field) { return row ? (*row).*field : 0; };
    auto code_total = [&](const std::optional<store::FunctionRow>& row) {
      return row ? row->total - std::min(row->total, row->os_time_total) : 0;
    };
    bool two = p.before && p.now;
    out_.row({std::string(key),
              c.growth,
              signed_percent(c.growth),
              c.self.has_error && j_.whole.before > 0 ? fmt::format("{:.2f} %", 100 * c.self.error / j_.whole.before) : "",
              c.share_before,
              c.share_now,
              rounded(c.self.before),
              rounded(c.self.now),
              number_if(c.self.has_error, rounded(c.self.error)),
              share_if(c.p.has_value(), c.p.value_or(0)),
              code_total(p.before),
              code_total(p.now),
              number_if(is_exact, of(p.before, &store::FunctionRow::os_time)),
              number_if(is_exact, of(p.now, &store::FunctionRow::os_time)),
              number_if(is_exact, of(p.before, &store::FunctionRow::calls)),
              number_if(is_exact, of(p.now, &store::FunctionRow::calls)),
              text_if_any(match_of(p)),
              share_if(two, p.similarity),
              text_if_any(p.before ? p.before->image : ""),
              text_if_any(p.before ? p.before->name : ""),
              is_prose ? std::string(base_name(f.image)) : f.image,
              is_prose ? name_with_history(p) : f.name});
  }

  Output& out_;
  const Sides& s_;
  const Judgement& j_;
  uint64_t limit_;
};

// What was tested, and what of that says nothing.
void errors_in_text(Output& out, const Judgement& j, const Rules& rules) {
  if (j.basis != Basis::Runs && j.basis != Basis::Counts) return;
  if (j.unclear.empty() && j.tests == 0) return;
  out.line();
  out.line(fmt::format(
      "The changes of {} are within their errors. {} tested, at a level of {} for all together (Holm's correction).",
      j.unclear.size() == 1 ? "1 other function" : fmt::format("{} other functions", with_commas(j.unclear.size())),
      j.tests == 1 ? "1 was" : fmt::format("{} were", with_commas(j.tests)), plain_percent(rules.level)));
  if (j.spread.sigma >= 0.01)
    out.line(fmt::format("Shares differ by some {} of themselves beyond the error of sampling, which is allowed for.",
                         plain_percent(100 * j.spread.sigma)));
  if (j.basis == Basis::Counts && !rules.totals)
    out.line("Whether the whole became slower needs several runs a side (weir diff A1 A2 A3 : B1 B2 B3), or --totals.");
}

const char* status_of(const Judgement& j, const Rules& rules) {
  if (!j.judges_whole) return "not judged";
  if (j.whole.change() == 0) return "same";
  if (!j.whole_is_certain(rules)) return "uncertain";
  return j.whole.change() > 0 ? "worse" : "better";
}

void put_verdict(Output& out, const Sides& s, const Judgement& j, const Rules& rules, const std::string& verdict) {
  out.fact("verdict", verdict);
  out.fact("whole", std::string(status_of(j, rules)));
  out.fact("change", j.grown());
  out.fact("error", share_if(j.whole.has_error && j.whole.before > 0, j.whole.error / std::max(j.whole.before, 1.0)));
  out.fact("p", share_if(j.whole.has_error, j.whole.p));
  out.fact("level", rules.level / 100);
  out.fact("tests", uint64_t{j.tests});
  out.fact("spread", j.spread.sigma);
  out.fact("threshold", share_if(rules.threshold.has_value(), rules.threshold.value_or(0) / 100));
  out.fact("beyond_threshold", j.beyond.empty() ? Cell() : Cell(j.beyond.front()));
  facts(out, "before", s.before, s.figures.before, !s.is_sampled());
  facts(out, "now", s.now, s.figures.now, !s.is_sampled());
  out.fact("scale", s.figures.scale_before.front());
}

void put_images(Output& out, const store::Match& match) {
  if (!out.is_json()) return;
  out.table("images", {{"before", nullptr, Kind::Path}, {"now", nullptr, Kind::Path}, {"why", nullptr, Kind::Label}});
  for (const store::ImagePair& i : match.renamed_images) out.row({i.before, i.now, i.why});
  out.end_table();
}

}  // namespace

Result<bool> show_diff(const Readers& before, const Readers& now, const DiffOptions& options, Output& out) {
  TRY(Sides s, Sides::load(before, now));
  TRY(store::Match match, store::match_alike(now, before, options.map));
  TRY(std::vector<Pair> pairs, store::compare(match, options.os, {s.figures.scale_before, s.figures.scale_now}));
  if (!options.filter.empty()) {
    Result<Pattern> pattern = Pattern::make(options.filter);
    if (!pattern) return fail("--filter {}", pattern.error().what);
    std::erase_if(pairs, [&](const Pair& p) {
      return !pattern->matches_name(p.either().name) && !(p.before && pattern->matches_name(p.before->name));
    });
  }
  TRY(Judgement j, judge(pairs, s.figures, options));
  std::string verdict = verdict_of(j, s, options);

  out.begin("diff");
  put_verdict(out, s, j, options, verdict);
  put_images(out, match);
  out.heading(verdict);
  if (out.is_markdown()) out.line();
  out.line(fmt::format("{} → {}", side_name(before), side_name(now)));
  if (out.is_text()) totals_in_text(out, s, j);
  for (const std::string& note : notes_for(s, match)) out.line((out.is_text() ? "  " : "- ") + note);
  uint64_t limit = options.limit.value_or(out.is_text() ? 15 : out.is_markdown() ? 5 : 0);
  Tables tables(out, s, j, limit == 0 ? UINT64_MAX : limit);
  bool shares = j.basis == Basis::Counts;
  tables.show("worse", shares ? "worse: a larger share than before" : "worse: more self time than before", j.worse);
  tables.show("better", shares ? "better: a smaller share" : "better: less self time", j.better);
  tables.show("new", s.is_sampled() ? "new: not seen before" : "new: did not run before", j.added);
  tables.show("gone", s.is_sampled() ? "gone: seen before" : "gone: ran before", j.gone);
  tables.show("renamed", "renamed or moved, otherwise as before", j.renamed);
  if (!out.is_text() && !out.is_markdown()) tables.show("unclear", "", j.unclear);
  errors_in_text(out, j, options);
  TRY_VOID(out.end());
  return !j.beyond.empty();
}

}  // namespace weir::report
