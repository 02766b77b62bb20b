// The function list: all functions, those with the most self time first. And the summary, which begins with the same list.
#include <algorithm>

#include "report/clones.h"
#include "report/parts.h"
#include "report/views.h"

namespace weir::report {
namespace {

using store::FunctionQuery;
using store::FunctionRow;

std::vector<Column> columns(const View& v) {
  bool sampled = v.is_sampled();
  return {
      {"", "self %", Kind::Share},
      {"self", sampled ? "samples" : "self", Kind::Cycles},
      v.seconds_column("self_seconds", "self"),
      {"", "total %", Kind::Share},
      {"total", sampled && v.per_second() > 0 ? nullptr : "total", Kind::Cycles},
      {"total_is_estimate", nullptr, Kind::Count},
      v.seconds_column("total_seconds", "total"),
      {"calls", sampled ? nullptr : "calls", Kind::Count},
      {"self_min", nullptr, Kind::Cycles},
      {"self_max", nullptr, Kind::Cycles},
      {"os_calls", nullptr, Kind::Count},
      {"os_time", nullptr, Kind::Cycles},
      {"os_time_total", nullptr, Kind::Cycles},
      v.waited_column("waited"),
      v.waited_seconds(),
      v.waited_column("waited_total"),
      {"", v.options.sort == "waited_total" ? "waited in all" : nullptr, Kind::Time},
      {"image", "image", Kind::Image},
      {"inlined", nullptr, Kind::Count},
      {"", v.reader.has_inlined() ? "inlined" : nullptr, Kind::Label},
      {"file", nullptr, Kind::Path},
      {"line", nullptr, Kind::Count},
      {"offset", nullptr, Kind::Count},
      {"size", nullptr, Kind::Count},
      {"linkage_name", nullptr, Kind::Label},
      {"named_by", nullptr, Kind::Label},
      {"clone", nullptr, Kind::Label},
      {"", nullptr, Kind::Path},  // where it is declared, for wide terminals
      {"name", "function", Kind::Name},
  };
}

Cell total_cell(const View& v, const FunctionRow& f) {
  return v.out.is_text() && f.is_estimate ? Cell("≈ " + with_unit(f.total)) : Cell(f.total);
}

void put(View& v, const FunctionRow& f) {
  Cell image = v.out.is_text() ? std::string(base_name(f.image)) : f.image;
  v.out.row({v.share(f.self),
             f.self,
             v.in_seconds(f.self),
             View::ratio(f.total, v.measured),
             total_cell(v, f),
             uint64_t{f.is_estimate},
             v.in_seconds(f.total),
             v.if_exact(f.calls),
             number_if(f.self_min),
             number_if(f.self_max),
             v.if_exact(f.os_calls),
             v.if_exact(f.os_time),
             v.if_exact(f.os_time_total),
             v.if_exact(f.waited),
             v.if_waited(f.waited),
             v.if_exact(f.waited_total),
             v.if_waited(f.waited_total),
             image,
             v.if_exact(f.inlined),
             std::string(f.inlining()),
             text_if_any(f.file),
             number_if(f.line, f.line),
             f.offset,
             f.size,
             f.linkage_name,
             text_if_any(f.named_by),
             text_if_any(f.clone),
             place(std::string(base_name(f.file)), f.line),
             f.name});
}

// With the model of another CPU.
Result<std::vector<FunctionRow>> rows_anew(View& v, FunctionQuery query) {
  std::vector<FunctionRow> rows;
  TRY_VOID(v.reader.functions(query, [&](const FunctionRow& f) {
    rows.push_back(f);
    if (f.id != store::none) rows.back().self = v.self_anew[f.id] + (query.os == store::OsTime::InSelf ? f.os_time : 0);
  }));
  if (query.order == "self") std::ranges::stable_sort(rows, std::ranges::greater(), &FunctionRow::self);
  return rows;
}

}  // namespace

// What costs nothing in the run (entries of linkage tables) costs nothing now.
Result<> cost_anew(View& v) {
  if (v.run.clock == "wall")
    return fail("--cpu: the times of {} are wall time, which no other CPU can be asked for", v.reader.path());
  TRY_VOID(v.reader.all_blocks([&](const store::BlockRow& b) {
    v.self_anew[b.function] += b.count * (b.cycles ? v.options.cost(b.bytes) : 0) + b.extra;
  }));
  v.totals.cycles = 0;
  for (auto& [function, cycles] : v.self_anew) v.totals.cycles += cycles;
  v.run.cpu = v.options.cpu;
  v.run.clock = "cycles";
  return {};
}

Result<> function_table(View& v, uint64_t count) {
  FunctionQuery query;
  query.os = v.options.os;
  query.filter = v.options.filter;
  if (!v.options.sort.empty()) query.order = v.options.sort;
  std::vector<Column> shown = columns(v);
  auto show_in_text = [&](std::string_view key, const char* title) {
    for (Column& c : shown)
      if (c.key == key) c.title = title;
  };
  // What it is sorted by is shown.
  for (const char* key : {"self_min", "self_max", "os_calls", "os_time", "offset", "size"})
    if (v.options.sort == key) show_in_text(key, key);
  if (v.options.sort == "inlined") show_in_text("inlined", "calls inlined");
  if (v.totals.os_time && v.options.os == store::OsTime::InSelf) show_in_text("os_time", "OS time");
  if (size_t width = v.out.style().width; width == 0 || width >= 120) shown[shown.size() - 2].title = "declared at";
  if (v.options.sort == "file" || v.options.sort == "line") {
    show_in_text("file", "file");
    show_in_text("line", "line");
  }
  v.out.table("functions", shown);
  uint64_t seen = 0, estimates = 0;
  auto each = [&](const FunctionRow& f) {
    if (seen++ < count) put(v, f), estimates += f.is_estimate;
  };
  if (v.options.merge_clones) {
    TRY(std::vector<FunctionRow> rows, rows_of_authors(v.reader, query));
    std::ranges::for_each(rows, each);
  } else if (v.options.parts) {
    TRY(std::vector<FunctionRow> rows, rows_with_parts(v.reader, query));
    std::ranges::for_each(rows, each);
  } else if (v.options.cost) {
    TRY(std::vector<FunctionRow> rows, rows_anew(v, query));
    std::ranges::for_each(rows, each);
  } else {
    TRY_VOID(v.reader.functions(query, each));
  }
  v.end_table(seen, count);
  if (estimates) v.out.line(fmt::format("≈ {}", about_estimates));
  return {};
}

namespace {

// "1.2 G cycles = code + OS calls".
std::string total_of(const View& v) {
  return v.amount(v.totals.all()) + (v.counts_os_time() ? fmt::format(" = {}", v.parts()) : "");
}

}  // namespace

Result<> functions(View& v) {
  if (v.is_sampled())
    v.out.heading(fmt::format("{} functions in {}", with_commas(v.totals.functions_run), v.amount(v.totals.all())));
  else
    v.out.heading(fmt::format("{} of {} functions ran; {}", with_commas(v.totals.functions_run),
                              with_commas(v.totals.functions), total_of(v)));
  return function_table(v, v.limit(30));
}

namespace {

// How the program that Weir ran ended, and which of its processes a signal did.
std::string endings(const View& v) {
  const store::ProcessRow* first = nullptr;
  for (const store::ProcessRow& p : v.processes)
    if (p.pid && (!first || p.started < first->started)) first = &p;
  if (!first) return "unknown";
  uint64_t by_signal = 0;
  const store::ProcessRow* last = first;  // of the programs that it executed one after the other
  for (const store::ProcessRow& p : v.processes) {
    if (p.pid == first->pid && p.started >= last->started) last = &p;
    by_signal += p.pid != first->pid && p.ended_by == "signal";
  }
  std::string text = ending(last->exit_status, last->ended_by);
  if (by_signal) text += fmt::format("; {} of its processes by a signal: see threads", with_commas(by_signal));
  return text;
}

// ", 1.23 s CPU (1.1 user, 0.13 system)": what it took with the probes.
std::string processor_time(const profile::Run& run) {
  if (!run.user_time || !run.system_time) return "";
  double user = double(*run.user_time) / 1e6, system = double(*run.system_time) / 1e6;
  return fmt::format(", {:.4g} s CPU ({:.4g} user, {:.4g} system)", user + system, user, system);
}

// What the summary says of OS calls; none: it is not known.
struct OsShares {
  std::optional<double> work_seconds, work_share, waited_seconds, waited_share;
};

// Work is without what was waited, whatever the total has in it. What was waited is no part of a total of model cycles: its share is of the
// time of all threads, on the processor (as the kernel measured it, the probes' included) or off it.
Result<OsShares> os_shares(const View& v) {
  OsShares s;
  double rate = profile::os_units_per_second(v.run);
  if (v.is_sampled() || !(rate > 0)) return s;
  if (v.counts_os_time()) {
    store::Cycles work = v.totals.os_time - (v.options.with_waits ? v.totals.waited : 0);
    if (v.run.os_model == "measured") s.work_seconds = double(work) / rate;
    s.work_share = View::ratio(work, v.totals.cycles + work);
  }
  s.waited_seconds = double(v.totals.waited) / rate;
  TRY(std::vector<store::ThreadRow> selected, v.reader.threads());
  TRY(std::vector<store::ThreadRow> all, v.reader.all_threads());
  if (!v.run.user_time || !v.run.system_time || selected.size() != all.size()) return s;
  double processor = double(*v.run.user_time + *v.run.system_time) / 1e6;
  if (double time = *s.waited_seconds + processor; time > 0) s.waited_share = *s.waited_seconds / time;
  return s;
}

// The processor time that the program takes natively: samples of it tell, counts do not.
std::optional<double> native_seconds(const View& v) {
  if (!v.is_sampled() || v.run.sampling->event != "cpu" || !v.run.sampling->sees_kernel || !(v.per_second() > 0)) return {};
  return double(v.totals.all()) / v.per_second();
}

void exact_lines(const View& v, const Line& line, const OsShares& os, const std::string& missing) {
  const store::Totals& t = v.totals;
  line("total", total_of(v));
  std::string calls = os_calls_and_faults(t);
  if (v.counts_os_time()) {
    line("  code", fmt::format("{} {}  {}, {} instructions", with_unit(t.cycles), v.unit(), percent(v.share(t.cycles)),
                               with_unit(t.instructions)));
    line("  OS work", fmt::format("{} {}{}  {}, {}{}{}", with_unit(t.os_time), v.unit(), v.os_seconds(t.os_time),
                                  percent(v.share(t.os_time)), calls, v.options.with_waits ? ", waiting included" : "",
                                  v.run.os_model == "classes" ? "; by the model of classes" : ""));
  } else {
    line("OS calls", fmt::format("{}: their time is not in the total; see oscalls", calls));
  }
  if (t.waited)
    line("waited", fmt::format("{}{}{}: see waits", seconds_of(v, t.waited),
                               os.waited_share ? fmt::format(", {} of threads' time", percent(*os.waited_share))
                                               : " off the processor",
                               v.options.with_waits ? "" : ", not in the total"));
  std::string ran = fmt::format("{} of {} ran{}", with_commas(t.functions_run), with_commas(t.functions), missing);
  constexpr size_t before = 16;  // columns
  line("functions", v.is_terminal() ? shortened(ran, v.out.style().width - before) : ran);
}

// "libc.so.6, libm.so.6 and 3 more"
std::string listed(const std::vector<std::string>& images) {
  constexpr size_t most = 3;
  std::string text;
  for (size_t i = 0; i < std::min(images.size(), most); i++)
    text += fmt::format("{}{}", i ? ", " : "", printable(base_name(images[i])));
  return images.size() > most ? fmt::format("{} and {} more", text, images.size() - most) : text;
}

}  // namespace

// What finds the function with the most self time, and no other.
static Result<std::string> word_for_top(const View& v) {
  FunctionRow top;
  store::FunctionQuery query;
  query.limit = 1;
  TRY_VOID(v.reader.functions(query, [&](const FunctionRow& f) { top = f; }));
  if (top.name.empty()) return "FUNCTION";
  std::string place;
  if (top.has_code && !top.image.empty()) place = fmt::format("{}+{:#x}", base_name(top.image), top.offset);
  constexpr size_t long_name = 40;
  if (!place.empty() && top.name.size() >= long_name) return place;
  std::vector<std::string> words = {top.name};
  if (!top.has_code)
    for (const std::string& where : {top.image, top.file})
      words.push_back(fmt::format("{}:{}", base_name(where), top.name));
  for (const std::string& word : words) {
    TRY(std::vector<store::FunctionInfo> named_so, v.reader.find(word));
    if (named_so.size() == 1) return word;
  }
  return place.empty() ? top.name : place;
}

Result<> summary(View& v) {
  const store::Totals& t = v.totals;
  const profile::Run& run = v.run;
  double wall = static_cast<double>(run.ended - run.started) / 1e6;
  v.out.fact("weir_version", run.weir_version);
  v.out.fact("host_cpu", run.host_cpu);
  v.out.fact("directory", run.directory);
  v.out.fact("wall_seconds", wall);
  v.out.fact("user_seconds", share_if(!!run.user_time, double(run.user_time.value_or(0)) / 1e6));
  v.out.fact("system_seconds", share_if(!!run.system_time, double(run.system_time.value_or(0)) / 1e6));
  v.out.fact("cycles_per_second", run.cycles_per_second);
  v.out.fact("processes", t.processes);
  v.out.fact("programs", t.programs);
  v.out.fact("threads", t.threads);
  v.out.fact("functions_known", t.functions);
  v.out.fact("functions_run", t.functions_run);
  v.out.fact("os_calls", v.if_exact(t.os_calls));
  v.out.fact("os_model", v.is_sampled() ? Cell() : run.os_model);
  v.out.fact("ended", endings(v));
  v.out.fact("complete", uint64_t{run.complete});
  TRY(OsShares os, os_shares(v));
  auto fact_if_known = [&](const char* name, std::optional<double> x) {
    v.out.fact(name, share_if(x.has_value(), x.value_or(0)));
  };
  fact_if_known("os_work_seconds", os.work_seconds);
  fact_if_known("os_work_share", os.work_share);
  fact_if_known("waited_seconds", os.waited_seconds);
  fact_if_known("waited_share", os.waited_share);
  fact_if_known("native_processor_seconds", native_seconds(v));
  sampling_facts(v);

  TRY(std::vector<std::string> blind, v.reader.images_without_lines());
  v.out.fact("without_lines", blind);
  std::string missing = blind.empty() ? "" : fmt::format(" (no debug information: {})", listed(blind));
  v.out.heading(shortened(quoted_command(run.command), v.out.style().width));
  auto line = [&](const char* what, const std::string& text) { v.out.line(fmt::format("  {:<14}{}", what, text)); };
  line("ended", endings(v));
  if (v.is_sampled()) sampling_lines(v, line);
  else exact_lines(v, line, os, missing);
  line("threads", threads_and_processes(t));
  if (v.is_sampled()) line("host", run.host_cpu.empty() ? "unknown" : printable(run.host_cpu));
  else if (run.clock == "wall") line("clock", "wall: probes count, so small functions look slower than they are");
  else if (run.clock == "instructions") line("clock", "instructions: all times are numbers of them");
  else line("model", fmt::format("cycles of {} (host: {}), which are no seconds", run.cpu, run.host_cpu));
  line("measured", fmt::format("{:.4g} s wall{} under Weir {}", wall, processor_time(run), run.weir_version));
  if (!v.is_sampled()) line("natively", "processor time not known: weir sample or perf stat tells it");
  if (!v.bad_rows.empty()) line("note", v.bad_rows);
  for (const store::ProcessRow& p : v.processes)
    for (const std::string& note : p.notes) line("note", fmt::format("process {}: {}", p.pid, printable(note)));
  v.out.line();
  TRY_VOID(function_table(v, v.options.limit.value_or(10)));
  v.out.line();
  // The next command to type, about the function at the top.
  if (v.is_sampled() && v.run.sampling->rate > 0 && t.all() == 0) {
    bool has_notes = std::ranges::any_of(v.processes, [](const store::ProcessRow& p) { return !p.notes.empty(); });
    v.out.line(fmt::format("no sample: {}. next: weir sample -F 20000 -- {}",
                           has_notes ? "see the note" : "it took less than a period of CPU time",
                           printable(quoted_command(run.command))));
    return {};
  }
  std::string file = quoted_command({v.reader.path()});
  TRY(std::string top, word_for_top(v));
  v.out.line(fmt::format("next: weir report {} detail {}", file, printable(quoted_command({top}))));
  v.out.line(fmt::format("      weir report {} {}", file, t.contexts ? "tree" : "functions"));
  return {};
}

}  // namespace weir::report
