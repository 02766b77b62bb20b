// SQLite with owners and Results. Errors of a statement are sticky: a loop over rows needs no check of its own.
//
//   Statement rows = db.prepare("SELECT id, path FROM image WHERE size > ?");
//   rows.bind(1, 4096);
//   while (rows.next()) use(rows.u32(0), rows.text(1));
//   TRY_VOID(rows.end());
//
// A file may come from anywhere: a column of the wrong type or out of range gives 0, `none` or an empty text, never
// anything undefined.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace weir::store {

// Statements that were used before, by their text: preparing one takes longer than most answers.
class StatementCache;

class Statement {
 public:
  Statement(sqlite3* db, StatementCache& cache, std::string_view sql, std::string_view file);

  void bind(int parameter, uint64_t value);
  void bind(int parameter, std::string_view value);
  void rewind();  // for other parameters

  bool next();           // false: no more rows, or an error
  Result<> end() const;  // the first error

  // Columns of the row, from 0.
  uint64_t u64(int column) const;
  int64_t i64(int column) const;
  double real(int column) const;     // not negative, and finite
  int64_t time(int column) const;    // microseconds since 1970, within reason
  uint32_t u32(int column) const;    // `none` where there is no such number
  uint32_t small(int column) const;  // a number of 32 bits that is no id: 0 where there is none
  std::optional<uint64_t> maybe(int column) const;
  // A count or a time as it is; of NULL, -1 or nothing.
  int64_t figure(int column) const;
  std::optional<int64_t> figure_if_any(int column) const;
  std::string text(int column) const;
  std::span<const std::byte> blob(int column) const;  // until the next row

 private:
  struct GiveBack {
    StatementCache* cache;
    void operator()(sqlite3_stmt* s) const;
  };
  std::unique_ptr<sqlite3_stmt, GiveBack> statement_;
  sqlite3* db_;
  std::string file_;
  std::optional<Error> error_;
  void note_error();
};

class Database {
 public:
  static Result<Database> open_to_read(const std::string& path);
  static Result<Database> open_to_write(const std::string& path);  // an empty file, without journal: see write.cc

  Statement prepare(std::string_view sql) const { return {db_.get(), *cache_, sql, path_}; }
  Result<> execute(const char* sql) const;
  Result<uint64_t> number(std::string_view sql) const;  // the first column of the first row, or 0
  sqlite3* get() const { return db_.get(); }
  const std::string& path() const { return path_; }

 private:
  struct Close {
    void operator()(sqlite3* db) const;
  };
  static Result<Database> open(const std::string& path, int flags);
  std::unique_ptr<sqlite3, Close> db_;
  std::shared_ptr<StatementCache> cache_;
  std::string path_;
};

// What SQLite says of its last error, as Weir says it.
Error sqlite_error(sqlite3* db, std::string_view path);

}  // namespace weir::store
