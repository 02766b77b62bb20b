// Functions with their counts, and who calls whom.
#include <algorithm>
#include <charconv>

#include "store/reader.h"

namespace weir::store {
namespace {

constexpr const char* info_tables =
    "function f LEFT JOIN string n ON n.id = f.name LEFT JOIN string l ON l.id = f.linkage_name "
    "LEFT JOIN image i ON i.id = f.image LEFT JOIN string s ON s.id = f.file";

FunctionInfo info_of(const Statement& row) {
  return {row.u32(0), row.text(1),  row.text(2),  row.text(3),  row.text(4),  row.small(5),    row.u64(6),
          row.u64(7), row.small(8), row.small(9), row.text(10), row.text(11), row.u64(12) != 0};
}

FunctionRow row_of(const Statement& row) {
  return {info_of(row), row.u64(13), row.u64(14), row.u64(15), row.maybe(16), row.maybe(17),   row.u64(18),
          row.u64(19),  row.u64(20), row.u64(21), row.u64(22), row.u64(23),   row.u64(24) != 0};
}

// The counts of each function, over the selected threads.
std::string counted(const std::string& info_columns, OsTime os) {
  return fmt::format(
      "SELECT {0}, c.calls AS calls, c.self {1} AS self, c.total + c.os_time_total AS total, c.self_min AS self_min, "
      "c.self_max AS self_max, c.os_calls AS os_calls, c.os_time AS os_time, c.os_time_total, c.waited AS waited, "
      "c.waited_total AS waited_total, c.inlined, c.is_estimate, n.text AS name, i.path AS image, s.text AS file "
      "FROM {2} JOIN (SELECT function, sum(calls) AS calls, sum(self) AS self, sum(total) AS total, "
      "  min(self_min) AS self_min, max(self_max) AS self_max, sum(os_calls) AS os_calls, sum(os_time) AS os_time, "
      "  sum(os_time_total) AS os_time_total, sum(waited) AS waited, sum(waited_total) AS waited_total, "
      "  sum(inlined) AS inlined, max(is_estimate) AS is_estimate FROM function_count WHERE thread IN selected "
      "  AND {3} GROUP BY function) c ON c.function = f.id",
      info_columns, os == OsTime::InSelf ? "+ c.os_time" : "", info_tables, ran);
}

// OS calls as functions of their own.
constexpr const char* os_functions =
    " UNION ALL SELECT NULL, '[' || o.name || ']', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1, "
    "sum(c.calls), sum(c.time), "
    "sum(c.time), NULL, NULL, sum(c.calls), sum(c.time), 0, sum(c.waited), sum(c.waited), 0, 0, '[' || o.name || ']', "
    "'[kernel]', NULL "
    "FROM os_count c JOIN os_call o ON o.number = c.number WHERE c.thread IN selected GROUP BY c.number";

constexpr const char* orders[] = {"self", "total",    "calls",        "name",     "image",   "file",
                                  "line", "self_min", "self_max",     "os_calls", "os_time", "offset",
                                  "size", "waited",   "waited_total", "inlined"};

}  // namespace

std::string Reader::info_columns() const {
  return fmt::format(
      "f.id, n.text, l.text, i.path, s.text, f.line, f.offset, f.size, f.first_block, f.blocks, {}, {}, f.has_code",
      since(6, "f.named_by"), since(6, "f.clone"));
}

Result<> Reader::functions(const FunctionQuery& q, const Each<FunctionRow>& each) const {
  if (std::ranges::find(orders, q.order) == std::end(orders))
    return fail("no column '{}' to sort by; there are: {}", q.order, fmt::join(orders, ", "));
  bool text = q.order == "name" || q.order == "image" || q.order == "file";
  std::string sql =
      fmt::format("SELECT * FROM ({}{}) {} ORDER BY {} {}, name, id {}", counted(info_columns(), q.os),
                  q.os == OsTime::Apart ? os_functions : "", q.filter.empty() ? "" : "WHERE matches(?1, name)", q.order,
                  text != q.ascending ? "ASC" : "DESC", q.limit ? fmt::format("LIMIT {}", q.limit) : "");
  Statement rows = db_.prepare(sql);
  if (!q.filter.empty()) rows.bind(1, q.filter);
  while (rows.next()) {
    FunctionRow row = row_of(rows);
    if (row.id == none) row.image = "[kernel]";
    each(row);
  }
  return rows.end();
}

Result<FunctionRow> Reader::function(uint32_t id, OsTime os) const {
  Statement rows = db_.prepare(
      fmt::format("SELECT {0}, sum(c.calls), sum(c.self {1}), sum(c.total + c.os_time_total), min(c.self_min), "
                  "max(c.self_max), sum(c.os_calls), sum(c.os_time), sum(c.os_time_total), sum(c.waited), "
                  "sum(c.waited_total), sum(c.inlined), max(c.is_estimate) FROM {2} "
                  "LEFT JOIN function_count c ON c.function = f.id AND c.thread IN selected WHERE f.id = ? GROUP BY f.id",
                  info_columns(), os == OsTime::InSelf ? "+ c.os_time" : "", info_tables));
  rows.bind(1, uint64_t{id});
  FunctionRow row;
  if (rows.next()) row = row_of(rows);
  TRY_VOID(rows.end());
  if (row.id == none) return fail("{}: has no function {}", path(), id);
  return row;
}

Result<> Reader::all_functions(const Each<FunctionInfo>& each) const {
  Statement rows = db_.prepare(fmt::format("SELECT {} FROM {} ORDER BY f.id", info_columns(), info_tables));
  while (rows.next()) each(info_of(rows));
  return rows.end();
}

Result<> Reader::names(const Each<std::string>& each) const {
  Statement rows = db_.prepare("SELECT text FROM string WHERE id IN (SELECT name FROM function) ORDER BY text");
  while (rows.next()) each(rows.text(0));
  return rows.end();
}

Result<std::vector<FunctionInfo>> Reader::find(const std::string& text) const {
  // "libc.so.6+0x1234": a place in an image, by its path or the last part of that.
  std::string image;
  uint64_t offset = 0;
  if (size_t plus = text.rfind("+0x"); plus != std::string::npos && plus > 0) {
    const char* end = text.data() + text.size();
    auto parsed = std::from_chars(text.data() + plus + 3, end, offset, 16);
    if (parsed.ec == std::errc() && parsed.ptr == end) image = text.substr(0, plus);
  }
  // "libc.so.6:name", "list.h:name": of several that share a name, the one of an image, or of a source file.
  std::string where, name;
  for (size_t colon = text.find(':'); colon != std::string::npos && where.empty(); colon = text.find(':', colon + 1))
    if (colon + 1 < text.size() && text[colon + 1] == ':') colon++;
    else where = text.substr(0, colon), name = text.substr(colon + 1);
  // The best kind of match wins; among equals, functions that ran.
  Statement rows = db_.prepare(fmt::format(
      "SELECT {0}, CASE "
      "WHEN is_called(n.text, ?1) OR (l.text = ?1 AND n.text NOT LIKE '% [resolver]') THEN 0 "
      "WHEN ?5 <> '' AND is_called(n.text, ?5) AND (i.path = ?4 OR i.path LIKE '%/' || ?4 OR s.text = ?4 OR "
      "s.text LIKE '%/' || ?4) THEN 0 "
      "WHEN ?2 <> '' AND f.has_code AND (i.path = ?2 OR i.path LIKE '%/' || ?2) AND ?3 >= f.offset AND ?3 < "
      "f.offset + max(f.size, 1) THEN ?3 <> f.offset "  // where it begins, or inside
      "WHEN substr(n.text, 1, length(?1) + 1) = ?1 || '(' THEN 2 "
      "WHEN instr(n.text, '::' || ?1 || '(') > 0 THEN 3 "
      "ELSE 4 END AS kind, (SELECT sum(total) FROM function_count c WHERE c.function = f.id AND "
      "{2}) AS weight FROM {1} WHERE instr(n.text, ?1) > 0 OR l.text = ?1 OR ((?2 <> '' OR ?5 <> '') AND kind <= 1) "
      "ORDER BY kind, weight IS NULL, weight DESC, n.text",
      info_columns(), info_tables, ran));
  rows.bind(1, text);
  rows.bind(2, image);
  rows.bind(3, offset);
  rows.bind(4, where);
  rows.bind(5, name);
  std::vector<FunctionInfo> found;
  bool some_ran = false;
  uint64_t best = 0;
  while (rows.next()) {
    if (found.empty()) best = rows.u64(13);
    if (rows.u64(13) != best) break;
    bool ran = rows.maybe(14).has_value();
    if (some_ran && !ran) break;
    some_ran |= ran;
    found.push_back(info_of(rows));
  }
  TRY_VOID(rows.end());
  return found;
}

Result<> Reader::calls(const CallQuery& q, const Each<CallRow>& each) const {
  static constexpr const char* columns[] = {"total", "calls", "caller", "callee", "waited_total"};
  if (std::ranges::find(columns, q.order) == std::end(columns))
    return fail("no column '{}' to sort by; there are: {}", q.order, fmt::join(columns, ", "));
  std::string where = "c.thread IN selected";
  if (q.caller != none) where += q.of_code ? " AND s.holder = ?2" : " AND s.function = ?2";
  if (q.callee != none) where += " AND c.callee = ?3";
  if (!q.filter.empty()) where += " AND matches(?1, en.text)";
  bool text = q.order == "caller" || q.order == "callee";
  // The kinds' names are in such an order that "tail call", the last, is said only of all sites together.
  Statement rows = db_.prepare(fmt::format(
      "SELECT s.function, c.callee, c.site, rn.text AS caller, en.text AS callee, i.path, min(s.kind), sf.text, s.line, "
      "s.offset, "
      "r.offset, count(DISTINCT c.site), sum(c.calls) AS calls, sum(c.total + c.os_time_total) AS total, min(c.self_min), "
      "max(c.self_max), sum(c.os_time_total), sum(c.waited_total) AS waited_total FROM {} LEFT JOIN function r ON r.id = "
      "s.function "
      "LEFT JOIN string rn ON rn.id = r.name LEFT JOIN image i ON i.id = r.image LEFT JOIN string sf ON sf.id = s.file "
      "LEFT JOIN function e ON e.id = c.callee LEFT JOIN string en ON en.id = e.name "
      "WHERE {} GROUP BY c.callee, {} ORDER BY {} {}, calls DESC, c.site {}",
      // What one function calls is found by its sites, and not by looking at all calls.
      q.caller != none ? "site s CROSS JOIN call_count c ON c.site = s.id"
                       : "call_count c LEFT JOIN site s ON s.id = c.site",
      where, q.by_site ? "c.site" : "s.function", q.order == "callee" ? "5" : q.order, text ? "ASC" : "DESC",
      q.limit ? fmt::format("LIMIT {}", q.limit) : ""));
  if (!q.filter.empty()) rows.bind(1, q.filter);
  if (q.caller != none) rows.bind(2, uint64_t{q.caller});
  if (q.callee != none) rows.bind(3, uint64_t{q.callee});
  while (rows.next())
    each({rows.u32(0), rows.u32(1), rows.u32(2), rows.text(3), rows.text(4), rows.text(5), rows.text(6), rows.text(7),
          rows.small(8), rows.u64(9), rows.u64(10), rows.u64(11), rows.u64(12), rows.u64(13), rows.maybe(14),
          rows.maybe(15), rows.u64(16), rows.u64(17)});
  return rows.end();
}

Result<> Reader::sites(const Each<CallRow>& each) const {
  Statement rows = db_.prepare(
      "SELECT s.id, s.function, s.kind, f.text, s.line, s.offset FROM site s LEFT JOIN string f ON f.id = s.file ORDER BY "
      "s.id");
  while (rows.next()) {
    CallRow row;
    row.site = rows.u32(0);
    row.caller = rows.u32(1);
    row.site_kind = rows.text(2);
    row.file = rows.text(3);
    row.line = rows.small(4);
    row.offset = rows.u64(5);
    each(row);
  }
  return rows.end();
}

}  // namespace weir::store
