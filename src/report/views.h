// What the views share. Each is one function, in a file of its name.
#pragma once

#include <unordered_map>

#include "base/text.h"
#include "profile/units.h"
#include "report/report.h"

namespace weir::report {

struct View {
  const store::Reader& reader;
  const Options& options;
  Output& out;
  profile::Run run;
  store::Totals totals;
  std::vector<store::ProcessRow> processes;
  std::string bad_rows = {};                                   // a line about them, where there are any
  store::Cycles measured = 0;                                  // the total of the run, whatever CPU it is shown for
  std::unordered_map<uint32_t, store::Cycles> self_anew = {};  // by function, where it is shown for another CPU

  bool is_sampled() const { return run.sampling.has_value(); }
  const char* unit() const { return profile::unit_of(run); }
  double per_second() const { return profile::units_per_second(run); }
  // What samples do not tell: nothing, of a sampled profile.
  Cell if_exact(uint64_t n) const { return number_if(!is_sampled(), n); }
  // A column of seconds, which only sampled profiles have (where they are samples of time); and what stands in it.
  Column seconds_column(const char* key, const char* title) const {
    return {is_sampled() ? key : "", is_sampled() && per_second() > 0 ? title : nullptr, Kind::Time};
  }
  // "1.2 k samples (12 ms)": a time of the code; " (1.2 ms)" of one in OS calls, which is measured whatever the clock is.
  std::string amount(store::Cycles time) const;
  std::string os_seconds(store::Cycles time) const;
  Cell in_seconds(store::Cycles c) const {
    return share_if(per_second() > 0, per_second() > 0 ? static_cast<double>(c) / per_second() : 0);
  }

  // A column of what was waited, and what stands in it: cycles in data, seconds in text, where anything was.
  Column waited_column(const char* key) const { return {key, nullptr, Kind::Cycles}; }
  Column waited_seconds(const char* title = "waited") const { return {"", totals.waited ? title : nullptr, Kind::Time}; }
  Cell os_in_seconds(store::Cycles c) const {
    double rate = profile::os_units_per_second(run);
    return share_if(rate > 0, rate > 0 ? static_cast<double>(c) / rate : 0);
  }
  Cell if_waited(store::Cycles c) const { return c ? os_in_seconds(c) : Cell(); }
  const char* parts() const { return options.with_waits ? "code + OS calls + waiting" : "code + OS calls"; }

  double share(store::Cycles c) const { return ratio(c, totals.all()); }
  static double ratio(uint64_t part, uint64_t whole) {
    return whole ? static_cast<double>(part) / static_cast<double>(whole) : 0;
  }
  // How many rows are shown, where text would have `of_text`.
  uint64_t limit(uint64_t of_text) const {
    uint64_t n = options.limit.value_or(out.is_text() ? of_text : 0);
    return n ? n : UINT64_MAX;
  }
  // Of `seen` rows, `limit` were shown.
  void end_table(uint64_t seen, uint64_t limit);
  // Is the time in OS calls in the total? Not where instructions are counted.
  bool counts_os_time() const { return run.clock != "instructions" && !is_sampled(); }
  bool is_terminal() const { return out.style().width != 0; }
};

Result<> summary(View& v);
Result<> functions(View& v);
Result<> detail(View& v);
Result<> callers(View& v);
Result<> source(View& v);
Result<> assembly(View& v);
Result<> tree(View& v);
Result<> os_calls(View& v);
Result<> waits(View& v);
Result<> coverage(View& v);
Result<> threads(View& v);

// The one function that the user means, or an error that lists those that it may be.
Result<store::FunctionInfo> one_function(const View& v, const std::string& text);

// The self times of all functions by the model of another CPU, from the counts of blocks.
Result<> cost_anew(View& v);

// A table of functions with at most `count` rows.
Result<> function_table(View& v, uint64_t count);

// "3 threads in 2 processes, which ran 5 programs".
std::string threads_and_processes(const store::Totals& t);

// "3 OS calls and 2 page faults".
std::string os_calls_and_faults(const store::Totals& t);

// Of a total of what was inlined (see FunctionRow::is_estimate).
constexpr const char* about_estimates =
    "inlined into functions that lead back to it: what places tell; weir profile --paths=full counts it";

// Lines about a function: what, how often, how long, by whom. `prefix` stands before each.
Result<> describe(View& v, const store::FunctionRow& f, std::string_view prefix);

// Of a sampled profile: how far it can be trusted, in a few words each; the lines of the summary; and the object `sampling`.
std::vector<std::string> quality_of(const profile::Sampling& s);
using Line = std::function<void(const char* what, const std::string& text)>;
void sampling_lines(const View& v, const Line& line);
void sampling_facts(View& v);
// Of a sampled profile: what `view` would show is not in it.
Result<> check_is_exact(const View& v, std::string_view what);

// "B+0x5 (tables.c:8)", for text and for JSON.
std::string site_name(const store::CallRow& call);
// "/src/tables.c:8", or nothing.
std::string place(const std::string& file, uint32_t line);
std::string seconds(double units_per_second, store::Cycles time);        // " (1.2 ms)", of a time that is one
std::string plain_seconds(double units_per_second, store::Cycles time);  // "1.2 ms"
std::string seconds_of(const View& v, store::Cycles time);               // … of a time in OS calls

}  // namespace weir::report
