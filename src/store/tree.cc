#include "store/tree.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace weir::store {

namespace {

constexpr uint8_t interior_of[] = {0x05, 0x02}, leaf_of[] = {0x0d, 0x0a};  // by kind
constexpr size_t head_pages = 28;                                          // where the head of the file has their number

// Of a record of `size` bytes, as many as stay in the page; the rest is in a chain of others.
size_t local_part(size_t size, Tree::Kind kind) {
  size_t most = kind == Tree::Table ? page_size - 35 : (page_size - 12) * 64 / 255 - 23;
  size_t least = (page_size - 12) * 32 / 255 - 23;
  if (size <= most) return size;
  size_t local = least + (size - least) % (page_size - 4);
  return local <= most ? local : least;
}

}  // namespace

uint32_t PageFile::append(std::span<const std::byte> page) {
  constexpr size_t most = 64 * page_size;
  if (buffer_.size() >= most) flush();
  buffer_.insert(buffer_.end(), page.begin(), page.end());
  return ++pages_;
}

void PageFile::replace(uint32_t number, std::span<const std::byte> page) { write(uint64_t{number - 1} * page_size, page); }

void PageFile::flush() {
  write(uint64_t{pages_} * page_size - buffer_.size(), buffer_);
  buffer_.clear();
}

void PageFile::write(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty() && !error_) {
    ssize_t n = pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      error_ = n ? errno : ENOSPC;
      return;
    }
    offset += static_cast<uint64_t>(n);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
}

Result<> PageFile::finish() {
  flush();
  std::byte number[4];
  put_big_endian(number, pages_);
  write(head_pages, number);
  if (!error_) return {};
  return fail("{}", error_ == ENOSPC ? "the disk is full" : strerror(error_));
}

Page::Page(uint8_t type) : type_(type) {}

std::byte* Page::add(size_t cell) {
  before_last_ = start_;
  start_ -= static_cast<uint32_t>(cell);
  put_big_endian(&bytes_[array_end()], static_cast<uint16_t>(start_));
  cells_++;
  return &bytes_[start_];
}

void Page::take_off_last() {
  start_ = before_last_;
  cells_--;
}

std::span<const std::byte> Page::finish() {
  bytes_[0] = std::byte{type_};
  memset(&bytes_[1], 0, 2);
  put_big_endian(&bytes_[3], static_cast<uint16_t>(cells_));
  put_big_endian(&bytes_[5], static_cast<uint16_t>(start_));
  bytes_[7] = std::byte{0};
  memset(&bytes_[array_end()], 0, start_ - array_end());
  cells_ = 0;
  start_ = before_last_ = page_size;
  return bytes_;
}

Tree::Tree(PageFile& file, uint32_t root, Kind kind) : file_(file), root_(root), kind_(kind) {
  levels_.emplace_back(leaf_of[kind]);
}

// The pages at hand, each the last child of the one above; the highest is the root.
Tree::~Tree() {
  uint32_t child = 0;
  for (Page& page : levels_) {
    if (page.is_interior()) page.set_right(child);
    if (&page == &levels_.back()) file_.replace(root_, page.finish());
    else child = file_.append(page.finish());
  }
}

void Tree::add(int64_t rowid, std::span<const std::byte> record) {
  CHECK(kind_ == Index || rowid > last_rowid_);
  const std::vector<std::byte>& cell = make_cell(rowid, record);
  if (!levels_[0].has_room_for(cell.size())) end_page(0);
  memcpy(levels_[0].add(cell.size()), cell.data(), cell.size());
  last_rowid_ = rowid;
}

std::vector<std::byte>& Tree::make_cell(int64_t rowid, std::span<const std::byte> record) {
  size_t local = local_part(record.size(), kind_);
  cell_.resize(2 * 9 + local + 4);
  size_t at = put_varint(cell_.data(), record.size());
  if (kind_ == Table) at += put_varint(&cell_[at], static_cast<uint64_t>(rowid));
  memcpy(&cell_[at], record.data(), local);
  at += local;
  if (local < record.size()) put_big_endian(&cell_[at], write_overflow(record.subspan(local))), at += 4;
  cell_.resize(at);
  return cell_;
}

// The chain, its last page first: each names the next. → the first
uint32_t Tree::write_overflow(std::span<const std::byte> rest) {
  constexpr size_t room = page_size - 4;
  uint32_t next = 0;
  for (size_t i = (rest.size() - 1) / room + 1; i--;) {
    std::vector<std::byte> page(page_size);
    auto part = rest.subspan(i * room, std::min(room, rest.size() - i * room));
    put_big_endian(page.data(), next);
    memcpy(&page[4], part.data(), part.size());
    next = file_.append(page);
  }
  return next;
}

// The page becomes a child of the one above. What stands there between it and the next: of a table its last rowid, of an index
// its last row, which is taken off it. An interior page gives away its last cell: whose child is its last one now.
void Tree::end_page(size_t level) {
  Page& page = levels_[level];
  std::vector<std::byte> between(9);
  if (level == 0 && kind_ == Table) {
    between.resize(put_varint(between.data(), static_cast<uint64_t>(last_rowid_)));
  } else {
    auto last = page.last();
    if (page.is_interior()) {
      uint32_t child = 0;
      for (std::byte b : last.first(4)) child = child << 8 | static_cast<uint32_t>(b);
      page.set_right(child);
      last = last.subspan(4);
    }
    between.assign(last.begin(), last.end());
    page.take_off_last();
  }
  uint32_t number = file_.append(page.finish());
  add_child(level + 1, number, between);
}

void Tree::add_child(size_t level, uint32_t child, std::span<const std::byte> content) {
  if (level == levels_.size()) levels_.emplace_back(interior_of[kind_]);
  if (!levels_[level].has_room_for(4 + content.size())) end_page(level);
  std::byte* at = levels_[level].add(4 + content.size());
  put_big_endian(at, child);
  memcpy(at + 4, content.data(), content.size());
}

}  // namespace weir::store
