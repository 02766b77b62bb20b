#include "report/clones.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/text.h"

namespace weir::report {
namespace {

using store::FunctionRow;
using Name = std::pair<std::string, std::string>;  // image and author's name

// Functions that had one name in two files are still two: `.lto_priv.1` tells them apart.
Name author_of(const FunctionRow& f) {
  std::string name(f.clone.empty() ? f.name : without_mark(f.name));
  if (f.clone.starts_with("lto_priv.")) {
    size_t next = f.clone.find('.', sizeof "lto_priv.");
    name += "." + f.clone.substr(0, next);
  }
  return {f.image, name};
}

bool is_only_renamed(const FunctionRow& f) {
  return f.clone.starts_with("lto_priv.") && f.clone.find('.', sizeof "lto_priv.") == std::string::npos;
}

bool are_one(const std::vector<FunctionRow>& rows, const std::vector<size_t>& group) {
  std::set<std::pair<std::string, uint32_t>> places;
  size_t originals = 0, clones = 0;
  for (size_t i : group) {
    const FunctionRow& f = rows[i];
    bool is_original = f.clone.empty() || is_only_renamed(f);
    (is_original ? originals : clones)++;
    if (!f.file.empty() && f.line) places.emplace(f.file, f.line);
  }
  return clones > 0 && group.size() > 1 && originals <= 1 && places.size() <= 1;
}

Result<> add_up(const store::Reader& reader, std::vector<FunctionRow>& rows, const std::vector<size_t>& group) {
  std::set<uint32_t> ids, inner;
  for (size_t i : group) {
    ids.insert(rows[i].id);
    if (rows[i].clone.starts_with("part") || rows[i].clone.find(".part") != std::string::npos) inner.insert(rows[i].id);
  }
  FunctionRow& sum = rows[group.front()];
  store::CallRow twice;  // what is in it twice: calls among them
  for (size_t i : group) {
    store::CallQuery query;
    query.caller = rows[i].id;
    TRY_VOID(reader.calls(query, [&](const store::CallRow& c) {
      if (!ids.contains(c.callee) || c.callee == rows[i].id) return;
      twice.total += c.total, twice.os_time_total += c.os_time_total, twice.waited_total += c.waited_total;
      if (inner.contains(c.callee)) twice.calls += c.calls;
    }));
    if (i == group.front()) continue;
    const FunctionRow& f = rows[i];
    sum.calls += f.calls, sum.self += f.self, sum.total += f.total;
    sum.os_calls += f.os_calls, sum.os_time += f.os_time, sum.os_time_total += f.os_time_total;
    sum.waited += f.waited, sum.waited_total += f.waited_total, sum.inlined += f.inlined;
    sum.is_estimate |= f.is_estimate;
    sum.clone += (sum.clone.empty() ? "" : ", ") + f.clone;
    if (sum.file.empty()) sum.file = f.file, sum.line = f.line;
  }
  sum.total -= std::min(sum.total, twice.total);
  sum.os_time_total -= std::min(sum.os_time_total, twice.os_time_total);
  sum.waited_total -= std::min(sum.waited_total, twice.waited_total);
  sum.calls -= std::min(sum.calls, twice.calls);
  sum.name = without_mark(sum.name);
  sum.total = std::max(sum.total, sum.self);
  sum.self_min = sum.self_max = {};
  return {};
}

}  // namespace

void sort_again(std::vector<FunctionRow>& rows, const store::FunctionQuery& query) {
  static const std::map<std::string, uint64_t FunctionRow::*> columns = {{"self", &FunctionRow::self},
                                                                         {"total", &FunctionRow::total},
                                                                         {"calls", &FunctionRow::calls},
                                                                         {"os_calls", &FunctionRow::os_calls},
                                                                         {"os_time", &FunctionRow::os_time},
                                                                         {"waited", &FunctionRow::waited},
                                                                         {"waited_total", &FunctionRow::waited_total}};
  if (auto column = columns.find(query.order); column != columns.end())
    std::ranges::stable_sort(
        rows, [&](const FunctionRow& a, const FunctionRow& b) { return a.*column->second > b.*column->second; });
}

Result<std::vector<FunctionRow>> rows_of_authors(const store::Reader& reader, store::FunctionQuery query) {
  query.limit = 0;
  std::vector<FunctionRow> rows;
  TRY_VOID(reader.functions(query, [&](const FunctionRow& f) { rows.push_back(f); }));
  std::map<Name, std::vector<size_t>> groups;
  for (size_t i = 0; i < rows.size(); i++)
    if (rows[i].id != store::none && rows[i].named_by.empty()) groups[author_of(rows[i])].push_back(i);
  std::set<size_t> gone;
  for (auto& [name, group] : groups) {
    if (!are_one(rows, group)) continue;
    TRY_VOID(add_up(reader, rows, group));
    gone.insert(group.begin() + 1, group.end());
  }
  std::vector<FunctionRow> left;
  for (size_t i = 0; i < rows.size(); i++)
    if (!gone.contains(i)) left.push_back(std::move(rows[i]));
  sort_again(left, query);
  return left;
}

}  // namespace weir::report
