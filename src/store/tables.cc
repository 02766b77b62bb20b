#include "store/tables.h"

#include "store/schema.h"
#include "store/sqlite.h"

namespace weir::store {

Result<Tables> Tables::create(const std::string& path, int fd) {
  TRY(Database db, Database::open_to_write(path));
  TRY_VOID(db.execute(
      fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}; BEGIN", application_id, schema_version).c_str()));
  TRY_VOID(db.execute(create_tables));
  TRY_VOID(db.execute(create_indices));
  TRY_VOID(db.execute("COMMIT"));
  TRY(uint64_t size, db.number("PRAGMA page_size"));
  CHECK(size == page_size);
  TRY(uint64_t pages, db.number("PRAGMA page_count"));
  Tables tables(fd, static_cast<uint32_t>(pages));
  Statement all = db.prepare("SELECT name, type, rootpage, sql FROM sqlite_schema WHERE rootpage > 0");
  while (all.next()) {
    std::string sql = all.text(3);
    bool by_columns = all.text(1) == "index" || sql.ends_with("WITHOUT ROWID");
    bool by_first = sql.find("INTEGER PRIMARY KEY") != std::string::npos;
    tables.places_[all.text(0)] = {all.u32(2), by_columns ? Rows::Key::Columns
                                               : by_first ? Rows::Key::First
                                                          : Rows::Key::None};
  }
  TRY_VOID(all.end());
  return tables;
}

Rows Tables::rows(const std::string& name) {
  Place place = places_.at(name);
  return {file_, place.root, place.key};
}

}  // namespace weir::store
