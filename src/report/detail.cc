// One function: what it cost, who called it, what it called; and the caller records of all functions.
#include <algorithm>

#include "report/views.h"

namespace weir::report {
namespace {

using store::CallRow;

// Callers of, or calls from, one function: one table of the same columns, so that CSV is one table.
Result<> call_table(View& v, std::string_view key, const char* direction, const store::FunctionRow& f, uint64_t whole) {
  bool callers = key == "callers";
  store::CallQuery query;
  (callers ? query.callee : query.caller) = f.id;
  query.by_site = v.options.sites || !v.out.is_text();
  if (!v.options.sort.empty()) query.order = v.options.sort;
  std::vector<Column> columns = {
      {"direction", nullptr, Kind::Label},
      {"share", "share", Kind::Share},
      {"total", v.is_sampled() ? "samples" : "total", Kind::Cycles},
      v.seconds_column("seconds", "seconds"),
      v.waited_column("waited_total"),
      {"", f.waited_total ? "waited" : nullptr, Kind::Time},
      {"calls", v.is_sampled() ? nullptr : "calls", Kind::Count},
      {"site", query.by_site ? "site" : nullptr, Kind::Label},
      {"kind", nullptr, Kind::Label},
      {"file", nullptr, Kind::Path},
      {"line", nullptr, Kind::Count},
      {"self_min", nullptr, Kind::Cycles},
      {"self_max", nullptr, Kind::Cycles},
      {"name", callers ? "caller" : "callee", Kind::Name},
  };
  std::vector<CallRow> rows;
  TRY_VOID(v.reader.calls(query, [&](const CallRow& c) { rows.push_back(c); }));
  if (!callers && v.options.os == store::OsTime::Apart) {
    TRY_VOID(v.reader.os_calls(true, f.id, [&](const store::OsRow& o) {
      CallRow row;
      row.callee_name = "[" + o.name + "]";
      row.site_kind = "OS call";
      row.calls = o.calls;
      row.total = o.time;
      row.waited_total = o.waited;
      rows.push_back(row);
    }));
    if (query.order == "total") std::ranges::stable_sort(rows, std::ranges::greater(), &CallRow::total);
  }
  v.out.table(key, columns);
  uint64_t limit = v.limit(15), seen = 0;
  for (const CallRow& c : rows) {
    if (seen++ >= limit) continue;
    std::string name = callers ? (c.caller == store::none ? "[start]" : c.caller_name) : c.callee_name;
    if (v.out.is_text() && !query.by_site && c.sites > 1) name += fmt::format("  ({} sites)", c.sites);
    if (v.out.is_text() && v.is_sampled() && !c.total) name += "  (recursion)";
    v.out.row({std::string(direction), View::ratio(c.total, whole), c.total, v.in_seconds(c.total),
               v.if_exact(c.waited_total), v.if_waited(c.waited_total), v.if_exact(c.calls),
               text_if_any(c.site_kind == "OS call" ? "" : site_name(c)), c.site_kind, text_if_any(c.file),
               number_if(c.line, c.line), number_if(c.self_min), number_if(c.self_max), name});
  }
  if (seen == 0) v.out.row_line(callers ? "  (nobody)" : "  (nothing)");
  v.end_table(seen, limit);
  return {};
}

}  // namespace

Result<> describe(View& v, const store::FunctionRow& f, std::string_view prefix) {
  auto line = [&](const std::string& text) { v.out.row_line(fmt::format("{}{}", prefix, text)); };
  size_t width = v.out.style().width ? v.out.style().width - prefix.size() : 0;
  line(shortened(f.name, width));
  std::string where = place(f.file, f.line);
  if (f.image.empty()) line("no code: it stands for what was not seen");
  else if (!f.has_code)
    line(fmt::format("{}{}, inlined wherever it is called", where.empty() ? "" : printable(where) + "  ",
                     printable(base_name(f.image))));
  else
    line(fmt::format("{}{}+{:#x}, {} bytes", where.empty() ? "" : printable(where) + "  ", printable(base_name(f.image)),
                     f.offset, with_commas(f.size)));
  if (v.is_sampled()) {
    for (auto [what, samples] : {std::pair("self ", f.self), std::pair("total", f.total)})
      line(fmt::format("{}  {}  {} of the program", what, v.amount(samples), percent(v.share(samples))));
    return {};
  }
  std::string range;
  if (f.self_min && f.self_max && f.calls > 1)
    range = *f.self_min == *f.self_max ? fmt::format("; {} a call", with_unit(*f.self_min))
                                       : fmt::format("; {} to {} a call", with_unit(*f.self_min), with_unit(*f.self_max));
  line(fmt::format("calls  {}{}", with_commas(f.calls),
                   f.inlined && f.has_code ? fmt::format(", {} of them inlined", with_commas(f.inlined)) : ""));
  line(fmt::format("self   {}  {} of the program{}", with_unit(f.self), percent(v.share(f.self)), range));
  line(fmt::format("total  {}{}  {} of the program", f.is_estimate ? "≈ " : "", with_unit(f.total),
                   percent(v.share(f.total))));
  if (f.is_estimate) line(fmt::format("       {}", about_estimates));
  if (f.os_calls || f.os_time_total)
    line(fmt::format("OS     {} of its own, {}{}; with descendants {}", counted(f.os_calls, "call"), with_unit(f.os_time),
                     v.options.os == store::OsTime::InSelf ? " (in self)" : " (not in self)", with_unit(f.os_time_total)));
  if (f.waited_total)
    line(fmt::format("waited {} of its own{}; with descendants {}", seconds_of(v, f.waited),
                     v.options.with_waits ? "" : " (not in self)", seconds_of(v, f.waited_total)));
  return {};
}

Result<> detail(View& v) {
  TRY(store::FunctionInfo info, one_function(v, v.options.subject));
  TRY(store::FunctionRow f, v.reader.function(info.id, v.options.os));
  v.out.fact("name", f.name);
  v.out.fact("linkage_name", f.linkage_name);
  v.out.fact("named_by", text_if_any(f.named_by));
  v.out.fact("clone", text_if_any(f.clone));
  v.out.fact("image", f.image);
  v.out.fact("offset", f.offset);
  v.out.fact("size", f.size);
  v.out.fact("file", text_if_any(f.file));
  v.out.fact("line", number_if(f.line, f.line));
  v.out.fact("calls", v.if_exact(f.calls));
  v.out.fact("inlined", v.if_exact(f.inlined));
  v.out.fact("self", f.self);
  v.out.fact("total", f.total);
  v.out.fact("total_is_estimate", uint64_t{f.is_estimate});
  v.out.fact("self_min", number_if(f.self_min));
  v.out.fact("self_max", number_if(f.self_max));
  v.out.fact("os_calls", v.if_exact(f.os_calls));
  v.out.fact("os_time", v.if_exact(f.os_time));
  v.out.fact("os_time_total", v.if_exact(f.os_time_total));
  v.out.fact("waited", v.if_exact(f.waited));
  v.out.fact("waited_total", v.if_exact(f.waited_total));
  if (v.out.is_text()) {
    v.out.table("", {});
    TRY_VOID(describe(v, f, ""));
    v.out.end_table();
    v.out.line();
    v.out.heading("called by (share of this function's total)");
  }
  TRY_VOID(call_table(v, "callers", "caller", f, f.total));
  v.out.line();
  v.out.heading("calls (share of this function's total)");
  return call_table(v, "callees", "callee", f, f.total);
}

Result<> callers(View& v) {
  store::CallQuery query;
  query.filter = v.options.filter;
  query.by_site = v.options.sites || !v.out.is_text();
  if (!v.options.sort.empty()) query.order = v.options.sort;
  if (!v.options.subject.empty()) {
    TRY(store::FunctionInfo info, one_function(v, v.options.subject));
    query.callee = info.id;
  }
  v.out.heading(fmt::format("who called whom; shares of {} {}", with_unit(v.totals.all()), v.unit()));
  v.out.table("calls", {{"", "share", Kind::Share},
                        {"total", v.is_sampled() ? "samples" : "total", Kind::Cycles},
                        v.seconds_column("seconds", "seconds"),
                        v.waited_column("waited_total"),
                        v.waited_seconds(),
                        {"calls", v.is_sampled() ? nullptr : "calls", Kind::Count},
                        {"caller", query.by_site ? nullptr : "caller", Kind::Name},
                        {"site", query.by_site ? "site" : nullptr, Kind::Name},
                        {"kind", nullptr, Kind::Label},
                        {"callee", "callee", Kind::Name}});
  uint64_t limit = v.limit(30), seen = 0;
  TRY_VOID(v.reader.calls(query, [&](const CallRow& c) {
    if (seen++ >= limit) return;
    std::string caller = c.caller == store::none ? "[start]" : c.caller_name;
    v.out.row({v.share(c.total), c.total, v.in_seconds(c.total), v.if_exact(c.waited_total), v.if_waited(c.waited_total),
               v.if_exact(c.calls), caller, site_name(c), c.site_kind, c.callee_name});
  }));
  v.end_table(seen, limit);
  return {};
}

}  // namespace weir::report
