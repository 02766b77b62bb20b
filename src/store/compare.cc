#include "store/compare.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"

namespace weir::store {
namespace {

Result<std::vector<FunctionRow>> rows_of(const Reader& reader, OsTime os) {
  std::vector<FunctionRow> rows;
  FunctionQuery query;
  query.os = os;
  query.order = "offset";
  query.ascending = true;
  TRY_VOID(reader.functions(query, [&](const FunctionRow& f) { rows.push_back(f); }));
  return rows;
}

using Key = std::pair<std::string, std::string>;
Key key_of(const FunctionRow& f) { return {f.name, std::string(base_name(f.image))}; }

}  // namespace

Result<std::vector<Pair>> compare(const Reader& now, const Reader& before, OsTime os, double scale) {
  TRY(std::vector<FunctionRow> new_rows, rows_of(now, os));
  TRY(std::vector<FunctionRow> old_rows, rows_of(before, os));
  for (FunctionRow& f : old_rows)
    for (Cycles* time : {&f.self, &f.total, &f.os_time, &f.os_time_total}) *time = scaled(*time, scale);
  std::map<Key, std::vector<size_t>> old_of;  // indices, the first to match last
  for (size_t i = old_rows.size(); i-- > 0;) old_of[key_of(old_rows[i])].push_back(i);
  std::vector<bool> matched(old_rows.size());
  std::vector<Pair> pairs;
  for (FunctionRow& f : new_rows) {
    Pair pair;
    if (auto same = old_of.find(key_of(f)); same != old_of.end() && !same->second.empty()) {
      size_t i = same->second.back();
      same->second.pop_back();
      matched[i] = true;
      pair.before = old_rows[i];
    }
    pair.now = std::move(f);
    pairs.push_back(std::move(pair));
  }
  std::ranges::stable_sort(pairs, {}, [](const Pair& p) { return p.either().id; });
  for (size_t i = 0; i < old_rows.size(); i++)
    if (!matched[i]) pairs.push_back({std::nullopt, std::move(old_rows[i])});
  return pairs;
}

Cycles scaled(Cycles time, double scale) {
  return scale == 1 ? time : static_cast<Cycles>(std::llround(static_cast<double>(time) * scale));
}

Result<double> scale_of(const Reader& now, const Reader& before) {
  TRY(std::string kind_before, before.kind());
  TRY(std::string kind_now, now.kind());
  if (kind_before != kind_now)
    return fail("{} holds '{}', {} '{}': these cannot be compared", before.path(), kind_before, now.path(), kind_now);
  TRY(profile::Run run_before, before.run());
  TRY(profile::Run run_now, now.run());
  if (run_before.clock != run_now.clock)
    return fail("{} counts {}, {} {}: profile again with the same --clock", before.path(), run_before.clock, now.path(),
                run_now.clock);
  if (!run_now.sampling || !run_before.sampling) return 1;
  const profile::Sampling &a = *run_before.sampling, &b = *run_now.sampling;
  if (a.event != b.event || (a.rate > 0) != (b.rate > 0))
    return fail("{} has samples of {}, {} of {}: sample again with the same --clock and --event", before.path(),
                shortened(a.event, 40), now.path(), shortened(b.event, 40));
  if (a.rate > 0) return b.rate / a.rate;
  return a.period && b.period ? static_cast<double>(a.period) / static_cast<double>(b.period) : 1;
}

Result<std::map<uint32_t, uint32_t>> same_threads(const Reader& now, const Reader& before) {
  std::map<std::pair<std::string, bool>, std::array<std::vector<uint32_t>, 2>> by_name;
  for (bool is_now : {false, true}) {
    TRY(std::vector<ThreadRow> threads, (is_now ? now : before).all_threads());
    for (const ThreadRow& t : threads) by_name[{t.name, t.pid == t.tid}][is_now].push_back(t.id);
  }
  std::map<uint32_t, uint32_t> same;
  for (auto& [name, ids] : by_name)
    if (ids[0].size() == 1 && ids[1].size() == 1) same[ids[1][0]] = ids[0][0];
  return same;
}

}  // namespace weir::store
