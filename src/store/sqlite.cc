#include "store/sqlite.h"

#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "profile/profile.h"

namespace weir::store {

Error sqlite_error(sqlite3* db, std::string_view path) {
  int code = sqlite3_errcode(db);
  int os = sqlite3_system_errno(db);
  switch (code & 0xff) {
    case SQLITE_FULL: return {fmt::format("{}: the disk is full", path)};
    case SQLITE_IOERR: return {fmt::format("{}: {}", path, os ? strerror(os) : sqlite3_errmsg(db))};
    case SQLITE_CANTOPEN: return {fmt::format("{}: cannot be opened: {}", path, os ? strerror(os) : "not a file")};
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return {fmt::format("{}: the file is damaged ({})", path, sqlite3_errmsg(db))};
    case SQLITE_ERROR: return {fmt::format("{}: not as Weir writes it ({})", path, sqlite3_errmsg(db))};
    default: return {fmt::format("{}: {}", path, sqlite3_errmsg(db))};
  }
}

class StatementCache {
 public:
  ~StatementCache() {
    for (auto& [sql, statement] : free_) sqlite3_finalize(statement);
  }
  // Null: there is none that is free.
  sqlite3_stmt* take(std::string_view sql) {
    auto found = free_.find(sql);
    return found == free_.end() ? nullptr : free_.extract(found).mapped();
  }
  void give_back(sqlite3_stmt* statement) {
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    free_.emplace(sqlite3_sql(statement), statement);
  }

 private:
  std::multimap<std::string, sqlite3_stmt*, std::less<>> free_;
};

void Statement::GiveBack::operator()(sqlite3_stmt* s) const { cache->give_back(s); }
void Database::Close::operator()(sqlite3* db) const { sqlite3_close_v2(db); }

Statement::Statement(sqlite3* db, StatementCache& cache, std::string_view sql, std::string_view file)
    : statement_(nullptr, GiveBack{&cache}), db_(db), file_(file) {
  sqlite3_stmt* statement = cache.take(sql);
  if (!statement && sqlite3_prepare_v2(db, sql.data(), static_cast<int>(sql.size()), &statement, nullptr) != SQLITE_OK)
    note_error();
  statement_.reset(statement);
}

void Statement::note_error() {
  if (!error_) error_ = sqlite_error(db_, file_);
}

void Statement::bind(int parameter, uint64_t value) {
  if (error_) return;
  if (sqlite3_bind_int64(statement_.get(), parameter, static_cast<int64_t>(value)) != SQLITE_OK) note_error();
}

void Statement::bind(int parameter, std::string_view value) {
  if (error_) return;
  int size = static_cast<int>(std::min<size_t>(value.size(), std::numeric_limits<int>::max()));
  if (sqlite3_bind_text(statement_.get(), parameter, value.data(), size, SQLITE_TRANSIENT) != SQLITE_OK) note_error();
}

void Statement::rewind() {
  if (!error_) sqlite3_reset(statement_.get());
}

bool Statement::next() {
  if (error_ || !statement_) return false;
  int code = sqlite3_step(statement_.get());
  if (code != SQLITE_ROW && code != SQLITE_DONE) note_error();
  return code == SQLITE_ROW;
}

Result<> Statement::end() const {
  if (error_) return std::unexpected(*error_);
  return {};
}

int64_t Statement::i64(int column) const { return sqlite3_column_int64(statement_.get(), column); }

double Statement::real(int column) const {
  double value = sqlite3_column_double(statement_.get(), column);
  return std::isfinite(value) && value > 0 ? value : 0;
}

uint64_t Statement::u64(int column) const {
  int64_t value = i64(column);
  return value < 0 ? 0 : static_cast<uint64_t>(value);
}

int64_t Statement::time(int column) const { return std::clamp<int64_t>(i64(column), 0, int64_t{1} << 53); }

uint32_t Statement::u32(int column) const {
  if (sqlite3_column_type(statement_.get(), column) != SQLITE_INTEGER) return profile::none;
  int64_t value = i64(column);
  return value < 0 || value > std::numeric_limits<uint32_t>::max() ? profile::none : static_cast<uint32_t>(value);
}

uint32_t Statement::small(int column) const {
  uint32_t value = u32(column);
  return value == profile::none ? 0 : value;
}

std::optional<uint64_t> Statement::maybe(int column) const {
  if (sqlite3_column_type(statement_.get(), column) != SQLITE_INTEGER || i64(column) < 0) return {};
  return u64(column);
}

int64_t Statement::figure(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL ? -1 : i64(column);
}

std::optional<int64_t> Statement::figure_if_any(int column) const {
  if (sqlite3_column_type(statement_.get(), column) == SQLITE_NULL) return {};
  return i64(column);
}

std::string Statement::text(int column) const {
  auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  return data ? std::string(data, static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column))) : std::string();
}

std::span<const std::byte> Statement::blob(int column) const {
  auto* data = static_cast<const std::byte*>(sqlite3_column_blob(statement_.get(), column));
  return {data, data ? static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column)) : 0};
}

Result<Database> Database::open(const std::string& path, int flags) {
  Database result;
  result.path_ = path;
  sqlite3* db = nullptr;
  int code = sqlite3_open_v2(path.c_str(), &db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  result.db_.reset(db);
  result.cache_ = std::make_shared<StatementCache>();
  if (!db) return fail("{}: no memory", path);
  if (code != SQLITE_OK) return std::unexpected(sqlite_error(db, path));
  return result;
}

Result<Database> Database::open_to_read(const std::string& path) {
  TRY(Database db, open(path, SQLITE_OPEN_READONLY));
  // The file may be anybody's: nothing that its schema names is run.
  sqlite3_db_config(db.get(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(db.get(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  // (Not mapped: whoever truncates a mapped file kills its readers.)
  TRY_VOID(db.execute("PRAGMA mmap_size = 0; PRAGMA cache_size = -65536; PRAGMA temp_store = memory"));
  return db;
}

Result<Database> Database::open_to_write(const std::string& path) {
  TRY(Database db, open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
  TRY_VOID(
      db.execute("PRAGMA page_size = 16384; PRAGMA journal_mode = off; PRAGMA synchronous = off;"
                 "PRAGMA locking_mode = exclusive; PRAGMA cache_size = -65536; PRAGMA temp_store = memory"));
  return db;
}

Result<> Database::execute(const char* sql) const {
  if (sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK)
    return std::unexpected(sqlite_error(db_.get(), path_));
  return {};
}

Result<uint64_t> Database::number(std::string_view sql) const {
  Statement rows = prepare(sql);
  uint64_t value = rows.next() ? rows.u64(0) : 0;
  TRY_VOID(rows.end());
  return value;
}

}  // namespace weir::store
