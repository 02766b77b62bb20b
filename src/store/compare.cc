#include "store/compare.h"

#include <algorithm>
#include <map>

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

Result<std::vector<Pair>> compare(const Reader& now, const Reader& before, OsTime os) {
  TRY(std::vector<FunctionRow> new_rows, rows_of(now, os));
  TRY(std::vector<FunctionRow> old_rows, rows_of(before, os));
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

}  // namespace weir::store
