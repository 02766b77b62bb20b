#include "store/bulk.h"

#include <sqlite3.h>

#include <new>

namespace weir::store {
namespace {

// What the virtual table shows at the moment.
struct Source {
  size_t count;
  const std::function<Row(size_t)>& row;
};

struct Table : sqlite3_vtab {
  const Source* source;
};

struct Cursor : sqlite3_vtab_cursor {
  size_t at = 0;
  Row row;

  const Source& source() const { return *static_cast<Table*>(pVtab)->source; }
  void go_to(size_t i) {
    at = i;
    if (i < source().count) row = source().row(i);
  }
};

int connect(sqlite3* db, void* source, int, const char* const*, sqlite3_vtab** result, char**) {
  auto* table = new (std::nothrow) Table{};
  if (!table) return SQLITE_NOMEM;
  table->source = static_cast<const Source*>(source);
  *result = table;
  return sqlite3_declare_vtab(db, "CREATE TABLE rows(c0,c1,c2,c3,c4,c5,c6,c7,c8,c9,c10,c11,c12,c13,c14,c15)");
}

int disconnect(sqlite3_vtab* table) {
  delete static_cast<Table*>(table);
  return SQLITE_OK;
}

int best_index(sqlite3_vtab*, sqlite3_index_info*) { return SQLITE_OK; }

int open_cursor(sqlite3_vtab*, sqlite3_vtab_cursor** result) {
  *result = new (std::nothrow) Cursor{};
  return *result ? SQLITE_OK : SQLITE_NOMEM;
}

int close_cursor(sqlite3_vtab_cursor* cursor) {
  delete static_cast<Cursor*>(cursor);
  return SQLITE_OK;
}

int first(sqlite3_vtab_cursor* c, int, const char*, int, sqlite3_value**) {
  static_cast<Cursor*>(c)->go_to(0);
  return SQLITE_OK;
}

int next(sqlite3_vtab_cursor* c) {
  auto* cursor = static_cast<Cursor*>(c);
  cursor->go_to(cursor->at + 1);
  return SQLITE_OK;
}

int at_end(sqlite3_vtab_cursor* c) {
  auto* cursor = static_cast<Cursor*>(c);
  return cursor->at >= cursor->source().count;
}

int column(sqlite3_vtab_cursor* c, sqlite3_context* out, int i) {
  const Value& v = static_cast<Cursor*>(c)->row.values[static_cast<size_t>(i)];
  switch (v.kind) {
    case Value::Kind::Null: sqlite3_result_null(out); break;
    case Value::Kind::Integer: sqlite3_result_int64(out, v.integer); break;
    case Value::Kind::Text:
      sqlite3_result_text(out, static_cast<const char*>(v.data), static_cast<int>(v.size), SQLITE_STATIC);
      break;
    case Value::Kind::Blob: sqlite3_result_blob(out, v.data, static_cast<int>(v.size), SQLITE_STATIC); break;
  }
  return SQLITE_OK;
}

int row_id(sqlite3_vtab_cursor* c, sqlite3_int64* id) {
  *id = static_cast<sqlite3_int64>(static_cast<Cursor*>(c)->at);
  return SQLITE_OK;
}

constexpr sqlite3_module module = [] {
  sqlite3_module m{};
  m.xConnect = connect;
  m.xBestIndex = best_index;
  m.xDisconnect = disconnect;
  m.xOpen = open_cursor;
  m.xClose = close_cursor;
  m.xFilter = first;
  m.xNext = next;
  m.xEof = at_end;
  m.xColumn = column;
  m.xRowid = row_id;
  return m;
}();

}  // namespace

Result<> insert_all(const Database& db, std::string_view table, size_t count, const std::function<Row(size_t)>& row) {
  if (count == 0) return {};
  Source source{count, row};
  if (sqlite3_create_module_v2(db.get(), "rows", &module, &source, nullptr) != SQLITE_OK)
    return std::unexpected(sqlite_error(db.get(), db.path()));
  std::string sql = fmt::format("INSERT INTO {} SELECT ", table);
  for (size_t i = 0, n = row(0).size; i < n; i++) sql += fmt::format("{}c{}", i ? ", " : "", i);
  Result<> result = db.execute((sql + " FROM rows").c_str());
  sqlite3_create_module_v2(db.get(), "rows", nullptr, nullptr, nullptr);  // the source is about to go
  return result;
}

}  // namespace weir::store
