// A profile that somebody has damaged or forged: whatever the file says, every view and every export shows something or tells in one
// line why not; it ends in time, and writes no more than a few megabytes.
//
// Input: two bytes that choose (see `Choice`), then 12 bytes for each change: of a row, by SQL, or of bytes of the file.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fixture/fixture.h"
#include "report/check.h"
#include "report/export.h"
#include "report/report.h"
#include "store/sqlite.h"
#include "store/write.h"

using namespace weir;

namespace {

namespace fs = std::filesystem;

struct Table {
  std::string name, key;  // columns that say which row it is
  std::vector<std::string> columns;
};

// A file to begin with.
struct Base {
  std::string bytes;
  std::vector<Table> tables;
};

struct Change {
  uint8_t table, column, row, kind;
  uint64_t number;
};

struct Choice {
  bool loose, sampled, changes_bytes;
  report::Format format;
  bool apart, limited, filtered, detailed;
  const char* subject;
};

std::string file_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> texts(const store::Database& db, const std::string& sql) {
  std::vector<std::string> all;
  store::Statement rows = db.prepare(sql);
  while (rows.next()) all.push_back(rows.text(0));
  CHECK(rows.end());
  return all;
}

class Stores {
 public:
  Stores() {
    std::string name = fs::temp_directory_path() / "weir-store-fuzz.XXXXXX";
    CHECK(mkdtemp(name.data()));
    directory_ = name;
    CHECK(mkfifo((directory_ / "fifo").c_str(), 0600) == 0);
    std::ofstream(directory_ / "rich.cc") << fixture::rich_source;
    for (bool sampled : {false, true}) {
      CHECK(store::write(sampled ? fixture::sampled() : fixture::rich(), file()));
      plain_[sampled] = describe();
      // Without keys and constraints rows may be anything: the same id twice, names that are NULL.
      auto db = store::Database::open_to_write(file());
      CHECK(db && db->execute("DROP VIEW function_total"));
      for (const Table& t : plain_[sampled].tables)
        CHECK(db->execute(
            fmt::format("CREATE TABLE other AS SELECT * FROM {0}; DROP TABLE {0}; ALTER TABLE other RENAME TO {0}", t.name)
                .c_str()));
      db = {};
      loose_[sampled] = describe();
    }
  }
  ~Stores() { fs::remove_all(directory_); }

  std::string file() const { return directory_ / "a.weir"; }
  const fs::path& directory() const { return directory_; }

  void make(const Choice& choice, std::span<const Change> changes) {
    const Base& base = (choice.loose ? loose_ : plain_)[choice.sampled];
    std::string bytes = base.bytes;
    if (choice.changes_bytes)
      for (const Change& c : changes) {
        uint32_t where;
        memcpy(&where, &c, sizeof where);
        memcpy(bytes.data() + where % (bytes.size() - 8), &c.number, 1 + where % 8);
      }
    std::ofstream(file(), std::ios::binary) << bytes;
    if (choice.changes_bytes) return;
    auto db = store::Database::open_to_write(file());
    CHECK(db);
    for (const Change& c : changes) (void)db->execute(sql_of(base, c).c_str());  // (what cannot be is refused)
  }

 private:
  Base describe() const {
    auto db = store::Database::open_to_read(file());
    CHECK(db);
    Base base{file_text(file()), {}};
    for (const std::string& name : texts(*db, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")) {
      auto columns = texts(*db, fmt::format("SELECT name FROM pragma_table_info('{}')", name));
      auto keys = texts(*db, fmt::format("SELECT name FROM pragma_table_info('{}') WHERE pk > 0", name));
      base.tables.push_back({name, keys.empty() ? "rowid" : fmt::format("{}", fmt::join(keys, ", ")), columns});
    }
    return base;
  }

  std::string value_of(const Table& t, const std::string& column, uint8_t kind, uint64_t n) const {
    switch (kind) {
      case 0: return std::to_string(static_cast<int64_t>(n));
      case 1: return std::to_string(n % 16);
      case 2: return "NULL";
      case 3: return fmt::format("'{}'", std::string(10'000, static_cast<char>('a' + n % 26)));
      case 4: return fmt::format("{}e300", n % 1000);
      case 5: return fmt::format("zeroblob({})", n % 10'000);
      case 6: return fmt::format("CAST(x'{:x}' AS TEXT)", n | uint64_t{1} << 63);
      case 7: return fmt::format("(SELECT {} FROM {} LIMIT 1 OFFSET {})", column, t.name, n % 16);
      case 8: return n % 2 ? "'/dev/zero'" : fmt::format("'{}/fifo'", directory_.string());
      case 9: return fmt::format("{}", 4294967295 - n % 4);
      case 10: return fmt::format("{}", INT64_MAX - static_cast<int64_t>(n % 4));
      case 11: return fmt::format("{} + {}", column, n % 4);
      default: return fmt::format("-{}", n % 16);
    }
  }

  // Rows are chosen by their place; 255 stands for all of them.
  std::string sql_of(const Base& base, const Change& c) const {
    const Table& t = base.tables[c.table % base.tables.size()];
    const std::string& column = t.columns[c.column % t.columns.size()];
    std::string where =
        c.row == 255 ? ""
                     : fmt::format(" WHERE ({0}) IN (SELECT {0} FROM {1} LIMIT 1 OFFSET {2})", t.key, t.name, c.row % 32);
    switch (c.kind % 15) {
      case 13: return fmt::format("DELETE FROM {}{}", t.name, where);
      case 14: return fmt::format("INSERT OR IGNORE INTO {0} SELECT * FROM {0}{1}", t.name, where);
      default:
        return fmt::format("UPDATE OR REPLACE {} SET {} = {}{}", t.name, column, value_of(t, column, c.kind % 15, c.number),
                           where);
    }
  }

  fs::path directory_;
  Base plain_[2], loose_[2];  // of an exact and of a sampled one
};

// What is written is counted, and looked at.
class Written {
 public:
  void add(std::string_view text) {
    text_ += text;
    CHECK(text_.size() < (64u << 20));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// An error is one line, but for lists of names that a word may mean.
void check_error(const Error& error) { CHECK(!error.what.empty() && error.what.size() < 100'000); }

void show(store::Reader& reader, const char* view, const Choice& choice, const fs::path& directory) {
  report::Options o;
  o.view = view;
  bool has_subject = o.view == "detail" || o.view == "callers" || o.view == "source" || o.view == "asm";
  if (has_subject) o.subject = choice.subject;
  o.os = choice.apart ? store::OsTime::Apart : store::OsTime::InSelf;
  if (choice.limited) o.limit = 3;
  if (choice.filtered && (o.view == "summary" || o.view == "functions" || o.view == "tree" || o.view == "coverage"))
    o.filter = "a|b";
  o.sites = choice.detailed && (o.view == "detail" || o.view == "callers" || o.view == "tree");
  o.blocks = choice.detailed && o.view == "source";
  o.source_map = {{"/src", directory}};
  Written written;
  report::Output out({choice.format, size_t{choice.limited ? 80u : 0u}, choice.detailed}, [&](std::string_view text) {
    written.add(text);
    return true;
  });
  Result<> shown;
  if (o.view != "check") shown = report::show(reader, o, out);
  else if (auto holds = report::check(reader, out); !holds) shown = std::unexpected(holds.error());
  if (!shown) return check_error(shown.error());
  if (choice.format == report::Format::Json) CHECK(nlohmann::json::accept(written.text()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Stores stores;
  if (size < 2) return 0;
  static constexpr const char* subjects[] = {"main", "fib", "rich.cc", ""};
  Choice choice{
      (data[0] & 1) != 0,        (data[1] & 64) != 0, (data[0] & 6) == 6, static_cast<report::Format>((data[0] >> 3) % 3),
      (data[1] & 1) != 0,        (data[1] & 2) != 0,  (data[1] & 4) != 0, (data[1] & 8) != 0,
      subjects[data[1] >> 4 & 3]};
  std::vector<Change> changes(std::min<size_t>((size - 2) / 12, 16));
  for (size_t i = 0; i < changes.size(); i++) {
    memcpy(&changes[i], data + 2 + 12 * i, 4);
    memcpy(&changes[i].number, data + 6 + 12 * i, 8);
  }
  stores.make(choice, changes);
  auto reader = store::Reader::open(stores.file());
  if (!reader) {
    check_error(reader.error());
    return 0;
  }
  show(*reader, "check", choice, stores.directory());
  for (const char* view : report::views) show(*reader, view, choice, stores.directory());
  for (auto how : {report::export_callgrind, report::export_folded, report::export_pprof, report::export_speedscope}) {
    Written written;
    auto done = how(*reader, [&](std::string_view text) { written.add(text); });
    if (!done) check_error(done.error());
  }
  return 0;
}
