// OS calls, threads, coverage: one table each.
#include <algorithm>
#include <map>

#include "report/views.h"

namespace weir::report {
namespace {

// "main (3), write (1), 2 more": the functions that made an OS call, those with the most time in it first.
std::string makers(const std::vector<store::OsRow>& rows) {
  constexpr size_t most = 3;
  std::string text;
  for (size_t i = 0; i < rows.size() && i < most; i++)
    text += fmt::format("{}{} ({})", i ? ", " : "", shortened(rows[i].function_name, 40), with_commas(rows[i].calls));
  if (rows.size() > most) text += fmt::format(", {} more", rows.size() - most);
  return text;
}

}  // namespace

std::string os_calls_and_faults(const store::Totals& t) {
  return counted(t.os_calls, "OS call") + (t.page_faults ? " and " + counted(t.page_faults, "page fault") : "");
}

Result<> os_calls(View& v) {
  TRY_VOID(check_is_exact(v, "oscalls"));
  uint32_t function = store::none;
  if (!v.options.subject.empty()) {
    TRY(store::FunctionInfo info, one_function(v, v.options.subject));
    function = info.id;
  }
  std::map<uint32_t, std::vector<store::OsRow>> by_call;
  TRY_VOID(v.reader.os_calls(true, function, [&](const store::OsRow& o) { by_call[o.number].push_back(o); }));

  store::Cycles all = 0;
  for (auto& [number, rows] : by_call)
    for (const store::OsRow& o : rows) all += o.time;
  // Where instructions are counted, the calls' time is part of nothing.
  store::Cycles whole = v.counts_os_time() ? v.totals.all() : all;
  v.out.heading(v.totals.os_calls || v.totals.page_faults
                    ? fmt::format("{} took {} cycles{}{}", os_calls_and_faults(v.totals), with_unit(all), v.os_seconds(all),
                                  v.counts_os_time() ? fmt::format(", {} of the program", percent(v.share(all))) : "")
                    : "no OS calls were made");
  if (v.run.os_model == "classes") v.out.line("by the model of classes: those that cannot wait take a round figure");
  if (v.totals.waited)
    v.out.line(fmt::format("off the processor in them: {}{}", seconds_of(v, v.totals.waited),
                           v.options.with_waits ? ", in these times" : ", in no time but `waited`"));
  v.out.table("oscalls", {{"", "share", Kind::Share},
                          {"time", "time", Kind::Cycles},
                          {"calls", "calls", Kind::Count},
                          {"errors", "errors", Kind::Count},
                          v.waited_column("waited"),
                          v.waited_seconds(),
                          {"class", v.run.os_model == "classes" ? "class" : nullptr, Kind::Label},
                          {"number", nullptr, Kind::Id},
                          {"name", "call", Kind::Label},
                          {"", "made by", Kind::Code}});
  uint64_t limit = v.limit(30), seen = 0;
  std::vector<store::OsRow> calls;
  TRY_VOID(v.reader.os_calls(false, function, [&](const store::OsRow& o) { calls.push_back(o); }));
  if (v.options.sort == "waited") std::ranges::stable_sort(calls, std::ranges::greater(), &store::OsRow::waited);
  if (v.options.sort == "calls") std::ranges::stable_sort(calls, std::ranges::greater(), &store::OsRow::calls);
  for (const store::OsRow& o : calls) {
    if (seen++ >= limit) continue;
    v.out.row({View::ratio(o.time, whole), o.time, o.calls, o.errors, o.waited, v.if_waited(o.waited), o.os_class,
               uint64_t{o.number}, o.name, makers(by_call[o.number])});
  }
  if (seen == 0 && function != store::none) v.out.line("the function makes no OS calls itself");
  v.end_table(seen, limit);
  if (v.out.style().format != Format::Json) return {};

  v.out.table("by_function", {{"name", "call", Kind::Name},
                              {"number", "", Kind::Id},
                              {"function", "", Kind::Name},
                              {"time", "", Kind::Cycles},
                              {"calls", "", Kind::Count},
                              {"errors", "", Kind::Count},
                              {"waited", "", Kind::Cycles}});
  for (auto& [number, rows] : by_call)
    for (const store::OsRow& o : rows)
      v.out.row({o.name, uint64_t{o.number}, o.function_name, o.time, o.calls, o.errors, o.waited});
  v.out.end_table();
  return {};
}

std::string threads_and_processes(const store::Totals& t) {
  std::string text = fmt::format("{} in {}", counted(t.threads, "thread"),
                                 t.processes == 1 ? "1 process" : with_commas(t.processes) + " processes");
  if (t.programs != t.processes) text += fmt::format(", which ran {}", counted(t.programs, "program"));
  return text;
}

namespace {

// Those with the most time first, where nothing else is asked for; names and numbers in growing order.
Result<> sort_threads(std::vector<store::ThreadRow>& rows, const std::string& column) {
  using Row = store::ThreadRow;
  auto sort = [&](auto key, bool descending) {
    if (descending) std::ranges::stable_sort(rows, std::ranges::greater(), key);
    else std::ranges::stable_sort(rows, std::ranges::less(), key);
    return Result<>();
  };
  if (column.empty()) return sort([](const Row& t) { return t.cycles + t.os_time; }, true);
  if (column == "cycles") return sort(&Row::cycles, true);
  if (column == "os_time") return sort(&Row::os_time, true);
  if (column == "waited") return sort(&Row::waited, true);
  if (column == "instructions") return sort(&Row::instructions, true);
  if (column == "functions") return sort(&Row::functions, true);
  if (column == "pid") return sort([](const Row& t) { return std::pair(t.pid, t.tid); }, false);
  if (column == "tid") return sort(&Row::tid, false);
  if (column == "name") return sort([](const Row& t) { return t.name; }, false);
  return fail("threads can be sorted by cycles, os_time, waited, instructions, functions, pid, tid or name, not by '{}'",
              column);
}

// Text has as much of it as tells programs apart.
std::string command_of(const View& v, const store::ProcessRow* process) {
  constexpr size_t enough = 100;
  std::string command = process ? quoted_command(process->command) : "";
  return v.out.is_text() && display_width(command) > enough ? fmt::format("{} …", first_columns(command, enough)) : command;
}

}  // namespace

Result<> threads(View& v) {
  TRY(std::vector<store::ThreadRow> rows, v.reader.threads());
  TRY_VOID(sort_threads(rows, v.options.sort));
  v.out.heading(threads_and_processes(v.totals));
  v.out.table("threads", {{"", "share", Kind::Share},
                          {"cycles", v.unit(), Kind::Cycles},
                          v.seconds_column("seconds", "seconds"),
                          {"os_time", v.counts_os_time() ? "OS time" : nullptr, Kind::Cycles},
                          v.waited_column("waited"),
                          v.waited_seconds(),
                          {"instructions", v.counts_os_time() ? "instr." : nullptr, Kind::Cycles},
                          {"functions", nullptr, Kind::Count},
                          {"pid", "pid", Kind::Id},
                          {"tid", "tid", Kind::Id},
                          {"exit_status", nullptr, Kind::Id},
                          {"ended_by", nullptr, Kind::Label},
                          {"", "ended", Kind::Label},
                          {"name", "name", Kind::Label},
                          {"command", "command", Kind::Code}});
  uint64_t limit = v.limit(50), seen = 0;
  for (const store::ThreadRow& t : rows) {
    if (seen++ >= limit) continue;
    const store::ProcessRow* process = nullptr;
    for (const store::ProcessRow& p : v.processes)
      if (p.id == t.process) process = &p;
    std::optional<uint64_t> status;
    if (process && process->exit_status) status = uint64_t(*process->exit_status);
    v.out.row({v.share(t.cycles + t.os_time), t.cycles, v.in_seconds(t.cycles), v.if_exact(t.os_time), v.if_exact(t.waited),
               v.if_waited(t.waited), v.if_exact(t.instructions), t.functions, uint64_t{t.pid}, uint64_t{t.tid},
               number_if(status), text_if_any(process ? process->ended_by : ""),
               process ? ending(process->exit_status, process->ended_by) : "", t.name, command_of(v, process)});
  }
  v.end_table(seen, limit);
  return {};
}

Result<> coverage(View& v) {
  TRY_VOID(check_is_exact(v, "coverage"));
  std::vector<store::CoverageRow> rows;
  store::CoverageRow all;
  TRY_VOID(v.reader.coverage(v.options.filter, [&](const store::CoverageRow& r) {
    rows.push_back(r);
    all.functions += r.functions;
    all.functions_run += r.functions_run;
    all.blocks += r.blocks;
    all.blocks_run += r.blocks_run;
    all.lines += r.lines;
    all.lines_run += r.lines_run;
  }));
  auto of = [](uint64_t part, uint64_t whole) {
    return whole ? fmt::format("{} of {} ({})", with_commas(part), with_commas(whole), percent(View::ratio(part, whole)))
                 : "none";
  };
  v.out.heading(fmt::format("ran: {} functions", of(all.functions_run, all.functions)));
  v.out.line(fmt::format("of the functions that ran: {} blocks, {} lines", of(all.blocks_run, all.blocks),
                         of(all.lines_run, all.lines)));
  v.out.table("coverage", {{"", "functions", Kind::Share},
                           {"functions_run", "ran", Kind::Count},
                           {"functions", "of", Kind::Count},
                           {"", "blocks", Kind::Share},
                           {"blocks_run", "ran", Kind::Count},
                           {"blocks", "of", Kind::Count},
                           {"", "lines", Kind::Share},
                           {"lines_run", "ran", Kind::Count},
                           {"lines", "of", Kind::Count},
                           {"image", nullptr, Kind::Path},
                           {"file", nullptr, Kind::Path},
                           {"", "file", Kind::Path}});
  auto share = [](uint64_t part, uint64_t whole) { return share_if(whole, View::ratio(part, whole)); };
  // In text, where there is nothing that could have run there is no number.
  auto number = [&](uint64_t n, uint64_t whole) { return number_if(whole || !v.out.is_text(), n); };
  uint64_t limit = v.limit(50), seen = 0;
  for (const store::CoverageRow& r : rows) {
    std::string where = !r.file.empty()            ? r.file
                        : r.image.starts_with('[') ? r.image
                                                   : fmt::format("[{}]", base_name(r.image));
    if (seen++ >= limit) continue;
    v.out.row({share(r.functions_run, r.functions), number(r.functions_run, r.functions), number(r.functions, r.functions),
               share(r.blocks_run, r.blocks), number(r.blocks_run, r.blocks), number(r.blocks, r.blocks),
               share(r.lines_run, r.lines), number(r.lines_run, r.lines), number(r.lines, r.lines), r.image,
               text_if_any(r.file), where});
  }
  v.end_table(seen, limit);
  return {};
}

}  // namespace weir::report
