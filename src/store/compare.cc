#include "store/compare.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"

namespace weir::store {
namespace {

// The figures of one side: of each function the sum over its runs, and its code in each of them.
struct Figures {
  FunctionRow sum;
  std::vector<Cycles> code;
  bool is_there = false;
};

struct SideFigures {
  std::vector<Figures> functions;           // as in the subject
  std::map<std::string, Figures> os_calls;  // by name
};

void add(Figures& to, FunctionRow f, size_t run, size_t runs, double scale) {
  for (Cycles* time : {&f.self, &f.total, &f.os_time, &f.os_time_total}) *time = scaled(*time, scale);
  if (!to.is_there) {
    to.code.resize(runs);
    to.is_there = true;
    to.code[run] = f.self;
    to.sum = std::move(f);
    return;
  }
  to.code[run] += f.self;
  to.sum.calls += f.calls, to.sum.self += f.self, to.sum.total += f.total;
  to.sum.os_calls += f.os_calls, to.sum.os_time += f.os_time, to.sum.os_time_total += f.os_time_total;
  if (f.self_min) to.sum.self_min = std::min(to.sum.self_min.value_or(*f.self_min), *f.self_min);
  if (f.self_max) to.sum.self_max = std::max(to.sum.self_max.value_or(0), *f.self_max);
}

uint64_t mean(uint64_t sum, size_t runs) { return (sum + runs / 2) / runs; }

void end(Figures& f, size_t runs, OsTime os) {
  if (os == OsTime::InSelf) f.sum.self += f.sum.os_time;
  for (uint64_t* sum : {&f.sum.calls, &f.sum.self, &f.sum.total, &f.sum.os_calls, &f.sum.os_time, &f.sum.os_time_total})
    *sum = mean(*sum, runs);
}

Result<SideFigures> figures_of(const Subject& side, OsTime os, const std::vector<double>& scales) {
  SideFigures figures;
  figures.functions.resize(side.functions.size());
  size_t runs = side.runs.size();
  for (size_t run = 0; run < runs; run++) {
    FunctionQuery query;
    query.os = OsTime::Apart;
    double scale = scales.empty() ? 1 : scales[run];
    TRY_VOID(side.runs[run]->functions(query, [&](const FunctionRow& f) {
      if (f.id == none) {
        if (os == OsTime::Apart) add(figures.os_calls[f.name], f, run, runs, scale);
      } else if (auto index = side.index_of_id[run].find(f.id); index != side.index_of_id[run].end()) {
        add(figures.functions[index->second], f, run, runs, scale);
      }
    }));
  }
  for (Figures& f : figures.functions) end(f, runs, os);
  for (auto& [name, f] : figures.os_calls) end(f, runs, OsTime::Apart);
  return figures;
}

void put(Pair& pair, Figures* before, Figures* now) {
  if (before && before->is_there) pair.before = std::move(before->sum), pair.code_before = std::move(before->code);
  if (now && now->is_there) pair.now = std::move(now->sum), pair.code_now = std::move(now->code);
}

}  // namespace

Result<std::vector<Pair>> compare(const Match& match, OsTime os, const Scales& scales) {
  TRY(SideFigures now, figures_of(match.now, os, scales.now));
  TRY(SideFigures before, figures_of(match.before, os, scales.before));
  std::vector<bool> done_now(now.functions.size()), done_before(before.functions.size());
  std::vector<Pair> pairs;
  auto add = [&](Pair pair, Figures* b, Figures* n) {
    put(pair, b, n);
    if (pair.before || pair.now) pairs.push_back(std::move(pair));
  };
  for (const FunctionPair& f : match.functions) {
    done_before[f.before] = done_now[f.now] = true;
    Pair pair;
    pair.is_renamed = f.is_renamed, pair.is_moved = f.is_moved, pair.similarity = f.similarity;
    add(std::move(pair), &before.functions[f.before], &now.functions[f.now]);
  }
  for (size_t n = 0; n < now.functions.size(); n++)
    if (!done_now[n]) add({}, nullptr, &now.functions[n]);
  for (size_t b = 0; b < before.functions.size(); b++)
    if (!done_before[b]) add({}, &before.functions[b], nullptr);
  for (auto& [name, figures] : now.os_calls) {
    auto same = before.os_calls.find(name);
    add({}, same == before.os_calls.end() ? nullptr : &same->second, &figures);
  }
  for (auto& [name, figures] : before.os_calls)
    if (!now.os_calls.contains(name)) add({}, &figures, nullptr);
  std::ranges::stable_sort(pairs, {}, [](const Pair& p) { return std::pair(!p.now, p.either().id); });
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
