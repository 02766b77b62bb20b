// The tables of a new store, and the rows that go into them.
//
// SQLite makes the empty file with its tables and indices; the rows are written past it (tree.h). Each table is written once, in
// the order of its key.
#pragma once

#include <array>
#include <map>
#include <string>

#include "store/tree.h"

namespace weir::store {

class Rows {
 public:
  enum class Key : uint8_t {
    None,
    First,
    Columns
  };  // numbered as they come; by the first column; WITHOUT ROWID and indices
  Rows(PageFile& file, uint32_t root, Key key)
      : key_(key), tree_(file, root, key == Key::Columns ? Tree::Index : Tree::Table) {}

  template <class... V>
  void add(V&&... v) {
    std::array<Value, sizeof...(V)> row{Value(std::forward<V>(v))...};
    int64_t id = key_ == Key::First ? row[0].integer : ++last_;
    if (key_ == Key::First) row[0] = {};  // the id says it
    encode(row, record_);
    tree_.add(id, record_);
  }

 private:
  Key key_;
  int64_t last_ = 0;
  std::vector<std::byte> record_;
  Tree tree_;
};

class Tables {
 public:
  // In the file at `path`, which is empty and open as `fd`.
  static Result<Tables> create(const std::string& path, int fd);
  // A table or an index. Rows are good until the next table is asked for, at most.
  Rows rows(const std::string& name);
  Result<> finish() { return file_.finish(); }

 private:
  struct Place {
    uint32_t root;
    Rows::Key key;
  };
  Tables(int fd, uint32_t pages) : file_(fd, pages) {}
  PageFile file_;
  std::map<std::string, Place> places_;
};

}  // namespace weir::store
