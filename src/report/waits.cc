// Where threads waited: what passed in OS calls while they were off the processor, by function and OS call, and on whose behalf.
#include <algorithm>
#include <set>

#include "base/pattern.h"
#include "report/views.h"

namespace weir::report {
namespace {

using store::CallRow;
using store::Cycles;
using store::none;
using store::OsRow;

// Who called a function in whose calls something was waited, most first.
Result<std::vector<CallRow>> waiting_callers(View& v, uint32_t function, bool by_site) {
  store::CallQuery query;
  query.callee = function;
  query.by_site = by_site;
  query.order = "waited_total";
  std::vector<CallRow> callers;
  TRY_VOID(v.reader.calls(query, [&](const CallRow& c) {
    if (c.waited_total) callers.push_back(c);
  }));
  return callers;
}

std::string name_of(const CallRow& c) { return c.caller == none ? "[start]" : c.caller_name; }

// " ← poll ← loop ← main (2 s), worker (1 s)": up to where callers differ. A function with one caller has all that it waited from that one. Where
// there are several, their shares are those of all that the function waited, its callees with it: they are told if that is `waited`, of
// which this is the way.
Result<std::string> way_to(View& v, uint32_t function, Cycles waited) {
  constexpr size_t most_steps = 8, most_callers = 3, longest = 40;
  std::string way;
  std::set<uint32_t> seen{function};
  for (size_t step = 0; step < most_steps; step++) {
    TRY(std::vector<CallRow> callers, waiting_callers(v, function, false));
    if (callers.empty()) break;
    Cycles all = 0;
    for (const CallRow& c : callers) all += c.waited_total;
    way += " ← ";
    for (size_t i = 0; i < callers.size() && i < most_callers; i++) {
      way += (i ? ", " : "") + shortened(name_of(callers[i]), longest);
      if (callers.size() > 1 && all <= waited) way += fmt::format(" ({})", seconds_of(v, callers[i].waited_total));
    }
    if (callers.size() > most_callers) way += fmt::format(", {} more", callers.size() - most_callers);
    function = callers.front().caller;
    if (callers.size() > 1 || function == none || !seen.insert(function).second) break;
  }
  return way;
}

Result<> caller_table(View& v, const std::vector<OsRow>& rows) {
  v.out.table("callers", {{"function", "", Kind::Name},
                          {"caller", "", Kind::Name},
                          {"site", "", Kind::Name},
                          {"waited", "", Kind::Cycles},
                          {"seconds", "", Kind::Time},
                          {"calls", "", Kind::Count}});
  std::set<uint32_t> told;
  for (const OsRow& o : rows) {
    if (!told.insert(o.function).second) continue;
    TRY(std::vector<CallRow> callers, waiting_callers(v, o.function, true));
    for (const CallRow& c : callers)
      v.out.row({o.function_name, name_of(c), site_name(c), c.waited_total, v.os_in_seconds(c.waited_total), c.calls});
  }
  v.out.end_table();
  return {};
}

}  // namespace

Result<> waits(View& v) {
  if (v.is_sampled() && v.run.sampling->event == "wall")
    return fail("{}: waits: a wall sample has them among its times: weir report {} functions", v.reader.path(),
                v.reader.path());
  TRY_VOID(check_is_exact(v, "waits"));
  TRY(Pattern pattern, Pattern::make(v.options.filter));
  std::vector<OsRow> rows;
  TRY_VOID(v.reader.os_calls(true, none, [&](const OsRow& o) {
    if (o.waited && (v.options.filter.empty() || pattern.matches(o.function_name))) rows.push_back(o);
  }));
  std::ranges::stable_sort(rows, std::ranges::greater(), &OsRow::waited);
  v.out.heading(v.totals.waited
                    ? fmt::format("threads were off the processor in OS calls for {}{}", seconds_of(v, v.totals.waited),
                                  v.options.with_waits ? "" : ", in no other time")
                    : "nothing was waited for");
  if (v.totals.waited)
    v.out.line("under Weir, where code is slower; natively: weir sample --clock=wall");
  v.out.table("waits", {{"", "share", Kind::Share},
                        {"waited", nullptr, Kind::Cycles},
                        {"seconds", "waited", Kind::Time},
                        {"calls", "calls", Kind::Count},
                        {"seconds_a_call", "a call", Kind::Time},
                        {"call", "OS call", Kind::Label},
                        {"function", "function", Kind::Name},
                        {"", "called by", Kind::Code}});
  uint64_t limit = v.limit(20), seen = 0;
  for (const OsRow& o : rows) {
    if (seen++ >= limit) continue;
    std::string way;
    if (v.out.is_text()) {
      TRY(way, way_to(v, o.function, o.waited));
    }
    double each = profile::os_units_per_second(v.run) > 0
                      ? double(o.waited) / profile::os_units_per_second(v.run) / double(std::max<uint64_t>(1, o.calls))
                      : 0;
    v.out.row({View::ratio(o.waited, v.totals.waited), o.waited, v.os_in_seconds(o.waited), o.calls,
               share_if(profile::os_units_per_second(v.run) > 0, each), o.name, o.function_name, way});
  }
  v.end_table(seen, limit);
  return v.out.style().format == Format::Json ? caller_table(v, rows) : Result<>();
}

}  // namespace weir::report
