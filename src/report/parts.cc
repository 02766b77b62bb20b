#include "report/parts.h"

#include <map>
#include <set>
#include <unordered_map>

#include "report/clones.h"

namespace weir::report {
namespace {

using store::FunctionRow;

struct Part {
  uint64_t begin = UINT64_MAX, end = 0;
  uint64_t self = 0, total = 0, os_time = 0, waited = 0;  // total: with what is called from there
};

// Where the functions of each image begin.
using Begins = std::map<std::string, std::set<uint64_t>>;

Result<Begins> begins_of(const store::Reader& reader) {
  Begins begins;
  TRY_VOID(reader.all_functions([&](const store::FunctionInfo& f) {
    if (f.size) begins[f.image].insert(f.offset);
  }));
  return begins;
}

// Is `offset` in another place than the function? (Right behind it, before the next one, is code that its symbol does not tell of.)
bool is_apart(const FunctionRow& f, uint64_t offset, const std::set<uint64_t>& begins) {
  if (offset < f.offset) return true;
  auto next = begins.upper_bound(f.offset);
  return offset - f.offset >= f.size && next != begins.end() && offset >= *next;
}

Result<> add_calls(const store::Reader& reader, const FunctionRow& f, const std::set<uint64_t>& begins, Part& part) {
  store::CallQuery query;
  query.caller = f.id, query.by_site = true;
  return reader.calls(query, [&](const store::CallRow& c) {
    if (!is_apart(f, c.offset, begins) || c.callee == f.id) return;
    part.total += c.total, part.os_time += c.os_time_total, part.waited += c.waited_total;
  });
}

}  // namespace

Result<std::vector<FunctionRow>> rows_with_parts(const store::Reader& reader, store::FunctionQuery query) {
  query.limit = 0;
  TRY(Begins begins, begins_of(reader));
  std::vector<FunctionRow> rows;
  std::unordered_map<uint32_t, size_t> row_of;
  TRY_VOID(reader.functions(query, [&](const FunctionRow& f) {
    if (f.id != store::none && f.size) row_of[f.id] = rows.size();
    rows.push_back(f);
  }));
  std::unordered_map<size_t, Part> parts;  // by the row of the function
  TRY_VOID(reader.all_blocks([&](const store::BlockRow& b) {
    auto row = row_of.find(b.function);
    if (row == row_of.end() || !is_apart(rows[row->second], b.offset, begins[rows[row->second].image])) return;
    Part& part = parts[row->second];
    part.begin = std::min(part.begin, b.offset), part.end = std::max(part.end, b.offset + b.bytes.size());
    part.self += b.self();
  }));
  for (auto& [row, part] : parts) {
    TRY_VOID(add_calls(reader, rows[row], begins[rows[row].image], part));
    FunctionRow own = rows[row];
    rows[row].self -= std::min(rows[row].self, part.self);
    rows[row].self_min = rows[row].self_max = {};
    own.name += " [cold]", own.clone = own.clone.empty() ? "cold" : own.clone + ".cold";
    own.offset = part.begin, own.size = part.end - part.begin;
    own.calls = own.os_calls = own.os_time = own.waited = 0;
    own.self_min = own.self_max = {};
    own.self = part.self, own.total = std::min(part.self + part.total, own.total);
    own.os_time_total = part.os_time, own.waited_total = part.waited;
    rows.push_back(own);
  }
  sort_again(rows, query);
  return rows;
}

}  // namespace weir::report
