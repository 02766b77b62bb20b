// Trees of a SQLite file, made from rows that come in the order of their keys: every page is filled, written once and never
// looked at again. SQLite takes a third of a microsecond a row to find the place where it goes; here that is known.
//
// After sqlite.org/fileformat2.html, "B-tree Pages". A *table* has its rows in the leaves, and the largest rowid of each child in
// the pages above. An *index* (also a table WITHOUT ROWID) has each row once: the one between two children stands above them.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "store/record.h"

namespace weir::store {

constexpr uint32_t page_size = 16384;

// The pages of a file, numbered from 1, each appended when it is full. Errors are told at the end.
class PageFile {
 public:
  PageFile(int fd, uint32_t pages) : fd_(fd), pages_(pages) {}
  uint32_t append(std::span<const std::byte> page);  // → its number
  void replace(uint32_t number, std::span<const std::byte> page);
  // Writes what is left, and the number of pages into the head of the file.
  Result<> finish();

 private:
  void write(uint64_t offset, std::span<const std::byte> bytes);
  void flush();
  int fd_;
  uint32_t pages_;
  int error_ = 0;
  std::vector<std::byte> buffer_;  // the last of the pages
};

class Page {
 public:
  explicit Page(uint8_t type);
  bool is_interior() const { return type_ < 8; }
  uint32_t cells() const { return cells_; }
  bool has_room_for(size_t cell) const { return array_end() + 2 + cell <= start_; }
  std::byte* add(size_t cell);  // → where it goes
  std::span<const std::byte> last() const { return std::span(bytes_).subspan(start_, before_last_ - start_); }
  void take_off_last();  // once
  // Of an interior page: the child behind its last cell.
  void set_right(uint32_t child) { put_big_endian(&bytes_[8], child); }
  // With its head; what is added next begins a new page.
  std::span<const std::byte> finish();

 private:
  size_t array_begin() const { return is_interior() ? 12 : 8; }
  size_t array_end() const { return array_begin() + 2 * cells_; }
  uint8_t type_;
  uint32_t cells_ = 0, start_ = page_size, before_last_ = page_size;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(page_size);
};

class Tree {
 public:
  enum Kind : uint8_t { Table, Index };
  // `root` is an empty page of the file that SQLite keeps for it.
  Tree(PageFile& file, uint32_t root, Kind kind);
  Tree(Tree&&) = delete;
  ~Tree();
  // Rows of a table have ascending numbers, those of an index are ascending themselves.
  void add(int64_t rowid, std::span<const std::byte> record);

 private:
  std::vector<std::byte>& make_cell(int64_t rowid, std::span<const std::byte> record);
  uint32_t write_overflow(std::span<const std::byte> rest);
  void end_page(size_t level);
  void add_child(size_t level, uint32_t child, std::span<const std::byte> content);

  PageFile& file_;
  uint32_t root_;
  Kind kind_;
  int64_t last_rowid_ = INT64_MIN;
  std::vector<Page> levels_;  // the page at hand of each, the leaf first
  std::vector<std::byte> cell_;
};

}  // namespace weir::store
