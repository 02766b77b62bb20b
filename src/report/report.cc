#include "report/report.h"

#include <algorithm>

#include "base/pattern.h"
#include "report/near.h"
#include "report/views.h"

namespace weir::report {
namespace {

// What could not be seen, one line each.
std::vector<std::string> notes_of(const View& v) {
  std::vector<std::string> notes;
  if (!v.bad_rows.empty()) notes.push_back(v.bad_rows);
  if (!v.run.complete) notes.push_back("the run was cut short; counts are those so far");
  for (const store::ProcessRow& p : v.processes)
    for (const std::string& note : p.notes) notes.push_back(fmt::format("process {}: {}", p.pid, note));
  return notes;
}

// The last line of every report, with as many notes as fit.
std::string quality(const View& v, const std::vector<std::string>& notes) {
  std::vector<std::string> all;
  if (v.is_sampled()) all = quality_of(*v.run.sampling);
  all.insert(all.end(), notes.begin(), notes.end());
  if (all.empty()) return "data: complete";
  size_t width = v.out.style().width;
  std::string line = "data: " + printable(all[0]);
  size_t told = 1;
  constexpr size_t rest = 30;  // for the words about those that are left out
  while (told < all.size() && (width == 0 || display_width(line) + display_width(all[told]) + rest <= width))
    line += "; " + printable(all[told++]);
  if (told < all.size()) line += fmt::format("; {} more: see summary", all.size() - told);
  return shortened(line, width);
}

// An option that a view has no use for is told, not ignored.
Result<> check_options(const Options& o) {
  auto only_for = [&](bool given, const char* option, std::initializer_list<std::string_view> fit) -> Result<> {
    if (!given || std::ranges::find(fit, o.view) != fit.end()) return {};
    return fail("{} is for {}; '{}' has no use for it", option, fmt::join(fit, ", "), o.view);
  };
  TRY_VOID(only_for(!o.sort.empty(), "--sort", {"summary", "functions", "detail", "callers", "oscalls", "threads"}));
  TRY_VOID(only_for(!o.filter.empty(), "--filter", {"summary", "functions", "callers", "tree", "waits", "coverage"}));
  if (Result<Pattern> made = Pattern::make(o.filter); !made) return fail("--filter {}", made.error().what);
  TRY_VOID(only_for(!!o.cost, "--cpu", {"summary", "functions"}));
  TRY_VOID(only_for(o.sites, "--sites", {"detail", "callers", "tree"}));
  TRY_VOID(only_for(o.blocks, "--blocks", {"source"}));
  TRY_VOID(only_for(o.merge_clones, "--merge-clones", {"summary", "functions"}));
  if (o.cost && o.merge_clones) return fail("--cpu does not go with --merge-clones");
  TRY_VOID(only_for(o.parts, "--parts", {"summary", "functions"}));
  if (o.parts && (o.cost || o.merge_clones)) return fail("--parts goes neither with --cpu nor with --merge-clones");
  if (o.view == "detail" && !o.sort.empty() && o.sort != "total" && o.sort != "calls" && o.sort != "waited_total")
    return fail("detail can be sorted by total, calls or waited_total, not by '{}'", o.sort);
  if (o.view == "oscalls" && !o.sort.empty() && o.sort != "time" && o.sort != "calls" && o.sort != "waited")
    return fail("oscalls can be sorted by time, calls or waited, not by '{}'", o.sort);
  return only_for(!o.subject.empty(), "a function", {"detail", "callers", "source", "asm", "oscalls"});
}

// Sampled profiles have no figures to sort by, or to cost anew, that samples do not tell.
Result<> check_options_of_samples(const View& v) {
  if (!v.is_sampled()) return {};
  static constexpr std::string_view unknown[] = {"calls",   "self_min", "self_max",    "os_calls",
                                                 "os_time", "waited",   "waited_total"};
  if (std::ranges::find(unknown, v.options.sort) != std::end(unknown))
    TRY_VOID(check_is_exact(v, fmt::format("--sort {}", v.options.sort)));
  return v.options.cost ? check_is_exact(v, "--cpu") : Result<>();
}

}  // namespace

void View::end_table(uint64_t seen, uint64_t limit) {
  if (seen == 0 && !options.filter.empty())
    out.line(fmt::format("nothing matches --filter {}", shortened(quoted_command({options.filter}), 80)));
  out.end_table(seen > limit ? seen - limit : 0);
}

std::string place(const std::string& file, uint32_t line) {
  return file.empty() ? "" : line ? fmt::format("{}:{}", file, line) : file;
}

std::string site_name(const store::CallRow& call) {
  if (call.caller == store::none) return "[start]";
  if (call.site_kind == "start") return call.caller_name;  // what cut a walk off is nowhere
  std::string name = fmt::format("{}+{:#x}", call.caller_name, call.offset - call.caller_offset);
  if (!call.file.empty()) name += fmt::format(" ({})", place(std::string(base_name(call.file)), call.line));
  if (call.site_kind != "call" && !call.site_kind.empty()) name += fmt::format(" [{}]", call.site_kind);
  return name;
}

std::string View::amount(store::Cycles time) const {
  return fmt::format("{} {}{}", is_sampled() ? with_commas(time) : with_unit(time), unit(), seconds(per_second(), time));
}

std::string View::os_seconds(store::Cycles time) const { return seconds(profile::os_units_per_second(run), time); }

std::string seconds(double units_per_second, store::Cycles time) {
  std::string text = plain_seconds(units_per_second, time);
  return text.empty() ? text : fmt::format(" ({})", text);
}
std::string seconds_of(const View& v, store::Cycles time) {
  return plain_seconds(profile::os_units_per_second(v.run), time);
}
std::string plain_seconds(double units_per_second, store::Cycles time) {
  if (!(units_per_second > 0)) return "";
  return in_short_seconds(static_cast<double>(time) / units_per_second);
}

// "libc.so.6 (list.h:12)": of a function that has no code.
static std::string inlined_place(const store::FunctionInfo& f) {
  std::string declared = place(std::string(base_name(f.file)), f.line);
  return fmt::format("{}{}", base_name(f.image), declared.empty() ? "" : fmt::format(" ({})", declared));
}

Result<store::FunctionInfo> one_function(const View& v, const std::string& text) {
  if (text.empty()) return fail("which function? weir report {} {} FUNCTION", v.reader.path(), v.options.view);
  TRY(std::vector<store::FunctionInfo> found, v.reader.find(text));
  if (found.size() == 1) return found.front();
  if (found.empty() && text.starts_with('[') && !v.is_sampled())
    return fail("{}: OS calls are told by: weir report {} oscalls", text, v.reader.path());
  if (found.empty()) {
    NearNames near(text);
    TRY_VOID(v.reader.names([&](const std::string& name) { near.offer(name); }));
    std::string list;
    for (const std::string& name : near.names())
      list += fmt::format("{}'{}'", list.empty() ? "" : ", ", shortened(name, 60));
    return fail("no function is named '{}'; {}", shortened(text, 80),
                list.empty() ? fmt::format("see: weir report {} functions --filter RE", v.reader.path())
                             : fmt::format("did you mean {}?", list));
  }
  constexpr size_t most = 10;
  std::string list;
  for (size_t i = 0; i < found.size() && i < most; i++)
    list += fmt::format(
        "\n  {}  {}",
        found[i].has_code ? fmt::format("{}+{:#x}", base_name(found[i].image), found[i].offset) : inlined_place(found[i]),
        shortened(found[i].name, 90));
  if (found.size() > most) list += fmt::format("\n  … and {} more", found.size() - most);
  bool all_have_code = std::ranges::all_of(found, &store::FunctionInfo::has_code);
  return fail("'{}' is part of {} names; give more of it, or image+offset{}:{}", shortened(text, 80), found.size(),
              all_have_code ? "" : ", image:name or file:name", list);
}

Result<> show(const store::Reader& reader, const Options& options, Output& out) {
  View v{reader, options, out, {}, {}, {}};
  TRY(v.run, reader.run());
  TRY(v.totals, reader.totals());
  v.measured = v.totals.all();
  TRY(v.processes, reader.processes());
  TRY(v.bad_rows, reader.bad_rows());
  std::vector<std::string> notes = notes_of(v);

  static constexpr std::pair<const char*, Result<> (*)(View&)> shown[] = {
      {"summary", summary}, {"functions", functions}, {"detail", detail},  {"callers", callers},
      {"source", source},   {"asm", assembly},        {"tree", tree},      {"oscalls", os_calls},
      {"waits", waits},     {"coverage", coverage},   {"threads", threads}};
  for (auto& [name, view] : shown) {
    if (options.view != name) continue;
    TRY_VOID(check_options(options));
    TRY_VOID(check_options_of_samples(v));
    if (options.cost) TRY_VOID(cost_anew(v));
    out.begin(name);
    out.begin_group("run");
    out.fact("command", v.run.command);
    out.fact("cpu", v.run.cpu);
    out.fact("clock", v.run.clock);
    out.fact("total", v.totals.all());
    out.fact("cycles", v.totals.cycles);
    out.fact("os_time", v.if_exact(v.totals.os_time));
    out.fact("waited", v.if_exact(v.totals.waited));
    out.fact("with_waits", uint64_t{options.with_waits});
    out.fact("instructions", v.if_exact(v.totals.instructions));
    out.end_group();
    out.fact("notes", notes);
    TRY_VOID(view(v));
    out.line();
    out.line(quality(v, notes));
    return out.end();
  }
  return fail("no view '{}'; there are: {}", options.view, fmt::join(views, ", "));
}

}  // namespace weir::report
