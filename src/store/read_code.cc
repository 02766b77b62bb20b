// Blocks, lines, contexts, OS calls, coverage.
#include <map>
#include <unordered_map>

#include "store/reader.h"

namespace weir::store {
namespace {

constexpr const char* block_columns =
    "b.id, b.function, b.offset, b.bytes, b.instructions, b.cycles, sum(c.count), sum(c.extra)";
constexpr const char* block_counts = "LEFT JOIN block_count c ON c.block = b.id AND c.thread IN selected";

BlockRow block_of(const Statement& row) {
  return {row.u32(0), row.u32(1), row.u64(2), row.blob(3), row.small(4), row.small(5), row.u64(6), row.u64(7)};
}

// The parts of the blocks that `which` names, in the order of blocks.
std::string lines_of(std::string_view which) {
  return fmt::format(
      "SELECT b.id, b.function, f.text, n.text, p.line, p.instructions, p.cycles, b.cycles, b.offset, "
      "(SELECT sum(c.count) FROM block_count c WHERE c.block = b.id AND c.thread IN selected), "
      "CASE WHEN p.position = (SELECT q.position FROM block_line q WHERE q.block = b.id ORDER BY q.cycles DESC LIMIT 1) "
      "THEN (SELECT sum(c.extra) FROM block_count c WHERE c.block = b.id AND c.thread IN selected) ELSE 0 END, p.position, "
      "p.scope, p.is_counted "
      "FROM block b JOIN block_line p ON p.block = b.id LEFT JOIN string f ON f.id = p.file "
      "LEFT JOIN string n ON n.id = p.inlined WHERE {}",
      which);
}

Result<> each_line(Statement rows, const Reader::Each<LineRow>& each) {
  while (rows.next()) {
    std::optional<bool> is_counted;
    if (auto known = rows.maybe(13)) is_counted = *known != 0;
    each({rows.u32(0), rows.u32(1), rows.text(2), rows.text(3), rows.small(4), rows.small(5), rows.small(6), rows.small(7),
          rows.u64(8), rows.u64(9), rows.u64(10), rows.small(11), rows.u32(12), is_counted});
  }
  return rows.end();
}

constexpr const char* context_columns =
    "SELECT id, parent, site, function, thread, calls, self, os_time, total, os_time_total, waited, waited_total, "
    "first_child, children FROM context ";

Result<> each_context(Statement rows, const Reader::Each<ContextRow>& each) {
  while (rows.next())
    each({rows.u32(0), rows.u32(1), rows.u32(2), rows.u32(3), rows.u32(4), rows.u64(5), rows.u64(6), rows.u64(7),
          rows.u64(8), rows.u64(9), rows.u64(10), rows.u64(11), rows.small(12), rows.small(13)});
  return rows.end();
}

}  // namespace

Result<> Reader::blocks(const FunctionInfo& f, const Each<BlockRow>& each) const {
  Statement rows =
      db_.prepare(fmt::format("SELECT {} FROM block b {} WHERE b.id >= ?1 AND b.id < ?1 + ?2 AND b.function = ?3 "
                              "GROUP BY b.id ORDER BY b.id",
                              block_columns, block_counts));
  rows.bind(1, uint64_t{f.first_block});
  rows.bind(2, uint64_t{f.blocks});
  rows.bind(3, uint64_t{f.id});
  while (rows.next()) each(block_of(rows));
  return rows.end();
}

Result<> Reader::all_blocks(const Each<BlockRow>& each) const {
  Statement rows =
      db_.prepare(fmt::format("SELECT {} FROM block b JOIN block_count c ON c.block = b.id AND c.thread IN selected "
                              "GROUP BY b.id",
                              block_columns));
  while (rows.next()) each(block_of(rows));
  return rows.end();
}

Result<> Reader::lines(const FunctionInfo& f, const Each<LineRow>& each) const {
  Statement rows = db_.prepare(lines_of("b.id >= ?1 AND b.id < ?1 + ?2 AND b.function = ?3"));
  rows.bind(1, uint64_t{f.first_block});
  rows.bind(2, uint64_t{f.blocks});
  rows.bind(3, uint64_t{f.id});
  if (!has_inlined_) return each_line(std::move(rows), each);
  TRY_VOID(each_line(std::move(rows), each));
  return lines_inlined(f, each);
}

// Where it was inlined into other functions. Its own lines are of no inlined function there.
Result<> Reader::lines_inlined(const FunctionInfo& f, const Each<LineRow>& each) const {
  struct Holder {
    uint64_t first_block, blocks;
  };
  std::map<uint32_t, Holder> holders;
  std::unordered_map<uint32_t, bool> scopes;  // in calls of it: is it the function itself?
  Statement all = db_.prepare(
      "SELECT s.id, s.parent, s.inlined, s.function, f.first_block, f.blocks FROM scope s JOIN function f ON f.id = "
      "s.function "
      "ORDER BY s.id");
  while (all.next()) {  // (the scope around one comes before it)
    bool is_own = all.u32(2) == f.id;
    if (all.u32(3) == f.id || (!is_own && !scopes.contains(all.u32(1)))) continue;
    scopes[all.u32(0)] = is_own;
    holders[all.u32(3)] = {all.u64(4), all.u64(5)};
  }
  TRY_VOID(all.end());
  for (auto& [function, holder] : holders) {
    Statement rows = db_.prepare(lines_of("b.id >= ?1 AND b.id < ?1 + ?2 AND b.function = ?3 AND p.scope IS NOT NULL"));
    rows.bind(1, holder.first_block);
    rows.bind(2, holder.blocks);
    rows.bind(3, uint64_t{function});
    TRY_VOID(each_line(std::move(rows), [&](const LineRow& row) {
      auto scope = scopes.find(row.scope);
      if (scope == scopes.end()) return;
      LineRow own = row;
      if (scope->second) own.inlined.clear();
      each(own);
    }));
  }
  return {};
}

Result<> Reader::lines(const std::string& file, const Each<LineRow>& each) const {
  Statement rows = db_.prepare(lines_of("p.file IN (SELECT id FROM string WHERE text = ?1)"));
  rows.bind(1, file);
  return each_line(std::move(rows), each);
}

Result<> Reader::inlined_calls_where(const char* condition, uint64_t caller, const std::string& file,
                                     const Each<InlinedCallRow>& each) const {
  if (!has_inlined_) return {};
  Statement rows = db_.prepare(fmt::format(
      "SELECT f.text, s.line, s.holder, s.scope, sum(c.calls) FROM site s CROSS JOIN call_count c ON c.site = s.id "
      "JOIN string f ON f.id = s.file WHERE s.kind = 'inlined' AND s.line > 0 AND c.thread IN selected AND {} "
      "GROUP BY s.id",
      condition));
  rows.bind(1, caller);
  rows.bind(2, file);
  while (rows.next()) each({rows.text(0), rows.small(1), rows.u32(2), rows.u32(3), rows.u64(4)});
  return rows.end();
}

Result<> Reader::inlined_calls(const FunctionInfo& caller, const Each<InlinedCallRow>& each) const {
  return inlined_calls_where("s.function = ?1 AND ?2 = ''", caller.id, "", each);
}

Result<> Reader::inlined_calls(const std::string& file, const Each<InlinedCallRow>& each) const {
  return inlined_calls_where("f.text = ?2 AND ?1 = 0", 0, file, each);
}

Result<std::vector<std::string>> Reader::files(const std::string& path) const {
  Statement rows = db_.prepare(
      "SELECT text, text = ?1 AS exact FROM string WHERE id IN (SELECT file FROM block_line UNION SELECT file FROM "
      "function) AND "
      "(text = ?1 OR substr(text, -length(?1) - 1) = '/' || ?1) ORDER BY exact DESC, text");
  rows.bind(1, path);
  std::vector<std::string> files;
  while (rows.next()) {
    if (!files.empty() && files.front() == path) break;  // exactly this one
    files.push_back(rows.text(0));
  }
  TRY_VOID(rows.end());
  return files;
}

Result<std::optional<profile::SourceFile>> Reader::source(const std::string& path) const {
  std::optional<profile::SourceFile> found;
  if (version_ < 4) return found;
  // (From the few files to their names: of all names none is found by its text but by looking at each.)
  Statement rows = db_.prepare("SELECT size, hash FROM source CROSS JOIN string s ON s.id = file WHERE s.text = ?");
  rows.bind(1, path);
  if (rows.next()) found = {path, rows.u64(0), rows.small(1)};
  TRY_VOID(rows.end());
  return found;
}

Result<> Reader::functions_in(const std::string& file, const Each<FunctionRow>& each) const {
  Statement ids =
      db_.prepare("SELECT f.id FROM function f JOIN string s ON s.id = f.file WHERE s.text = ? ORDER BY f.line, f.id");
  ids.bind(1, file);
  while (ids.next()) {
    TRY(FunctionRow row, function(ids.u32(0), OsTime::Apart));
    each(row);
  }
  return ids.end();
}

Result<> Reader::roots(const Each<ContextRow>& each) const {
  return each_context(db_.prepare(std::string(context_columns) + "WHERE parent IS NULL AND thread IN selected"), each);
}

// A child's id is larger than its parent's, so whoever follows children comes to an end.
Result<> Reader::children(const ContextRow& parent, const Each<ContextRow>& each) const {
  Statement rows =
      db_.prepare(std::string(context_columns) + "WHERE id >= ?1 AND id < ?1 + ?2 AND parent = ?3 AND id > ?3");
  rows.bind(1, uint64_t{parent.first_child});
  rows.bind(2, uint64_t{parent.children});
  rows.bind(3, uint64_t{parent.id});
  return each_context(std::move(rows), each);
}

Result<> Reader::contexts(const Each<ContextRow>& each) const {
  return each_context(db_.prepare(std::string(context_columns) + "WHERE thread IN selected ORDER BY id"), each);
}

Result<> Reader::leaves(const Each<LeafRow>& each) const {
  if (version_ < 3) return {};
  Statement rows = db_.prepare(
      "SELECT l.context, l.block, l.samples, b.offset, f.text, n.text, p.line FROM leaf_count l LEFT JOIN block b ON b.id "
      "= "
      "l.block LEFT JOIN block_line p ON p.block = l.block AND p.position = 0 LEFT JOIN string f ON f.id = p.file LEFT "
      "JOIN "
      "string n ON n.id = p.inlined ORDER BY l.context, l.block");
  while (rows.next()) each({rows.u32(0), rows.u32(1), rows.u64(2), rows.u64(3), rows.text(4), rows.text(5), rows.small(6)});
  return rows.end();
}

Result<> Reader::os_calls(bool by_function, uint32_t function, const Each<OsRow>& each) const {
  Statement rows = db_.prepare(fmt::format(
      "SELECT c.number, c.function, o.name, n.text, max(c.class), sum(c.calls), sum(c.errors), sum(c.time), "
      "sum(coalesce(c.waited, 0)) FROM os_count c LEFT JOIN os_call o ON o.number = c.number LEFT JOIN function f "
      "ON f.id = c.function LEFT JOIN string n ON n.id = f.name WHERE c.thread IN selected {} GROUP BY c.number {} "
      "ORDER BY sum(c.time) DESC, sum(coalesce(c.waited, 0)) DESC, c.number",
      function == none ? "" : fmt::format("AND c.function = {}", function), by_function ? ", c.function" : ""));
  while (rows.next()) {
    OsRow row{rows.small(0), by_function ? rows.u32(1) : none,
              rows.text(2),  by_function ? rows.text(3) : "",
              rows.text(4),  rows.u64(5),
              rows.u64(6),   rows.u64(7),
              rows.u64(8)};
    if (row.name.empty()) row.name = fmt::format("syscall {}", row.number);
    each(row);
  }
  return rows.end();
}

Result<> Reader::coverage(const std::string& filter, const Each<CoverageRow>& each) const {
  // Three sums, each by image and file: functions and blocks by the file of the function, lines by their own.
  Statement rows = db_.prepare(fmt::format(R"(
    WITH ran AS (SELECT DISTINCT function AS id FROM function_count WHERE thread IN selected AND {}),
      block_ran AS (SELECT DISTINCT block AS id FROM block_count WHERE thread IN selected AND count > 0),
      f AS (SELECT image, file, count(*) AS functions, sum(id IN ran) AS functions_run FROM function GROUP BY 1, 2),
      b AS (SELECT f.image, f.file, count(*) AS blocks, sum(b.id IN block_ran) AS blocks_run
            FROM block b JOIN function f ON f.id = b.function GROUP BY 1, 2),
      l AS (SELECT image, file, count(*) AS lines, sum(run) AS lines_run FROM
             (SELECT f.image, p.file, p.line, max(b.id IN block_ran) AS run FROM block_line p
              JOIN block b ON b.id = p.block JOIN function f ON f.id = b.function WHERE p.line > 0 GROUP BY 1, 2, 3)
            GROUP BY 1, 2),
      places AS (SELECT image, file FROM f UNION SELECT image, file FROM b UNION SELECT image, file FROM l)
    SELECT i.path, s.text, f.functions, f.functions_run, b.blocks, b.blocks_run, l.lines, l.lines_run FROM places x
      LEFT JOIN f ON f.image IS x.image AND f.file IS x.file LEFT JOIN b ON b.image IS x.image AND b.file IS x.file
      LEFT JOIN l ON l.image IS x.image AND l.file IS x.file
      LEFT JOIN image i ON i.id = x.image LEFT JOIN string s ON s.id = x.file
    WHERE ?1 = '' OR matches(?1, coalesce(s.text, i.path)) ORDER BY x.image, s.text)",
                                           ran));
  rows.bind(1, filter);
  while (rows.next())
    each({rows.text(0), rows.text(1), rows.u64(2), rows.u64(3), rows.u64(4), rows.u64(5), rows.u64(6), rows.u64(7)});
  return rows.end();
}

Result<std::vector<std::string>> Reader::images_without_lines() const {
  Statement rows = db_.prepare(
      "SELECT i.path FROM function_count c JOIN function f ON f.id = c.function JOIN image i ON i.id = f.image "
      "WHERE c.thread IN selected GROUP BY i.id HAVING sum(c.self) > 0 AND count(f.file) = 0 ORDER BY sum(c.self) DESC");
  std::vector<std::string> images;
  while (rows.next()) images.push_back(rows.text(0));
  TRY_VOID(rows.end());
  return images;
}

Result<> Reader::images(const std::function<void(uint32_t, const profile::Image&)>& each) const {
  Statement rows = db_.prepare("SELECT id, path, build_id, size, modified FROM image ORDER BY id");
  while (rows.next()) each(rows.u32(0), {rows.text(1), rows.text(2), rows.u64(3), rows.i64(4)});
  return rows.end();
}

}  // namespace weir::store
