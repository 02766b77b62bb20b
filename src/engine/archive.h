// Translations of earlier runs, one file an image, in the user's cache directory.
//
// Code that runs once costs more to translate than to run; but the same libraries and programs run again and again. An
// image lies at its home in every run (engine/home.h), so its translated code and its part of the table are kept as they
// are in memory: the next target maps them from the file, and they cost neither translation nor memory. What Weir itself
// must know of the code stands behind it, in arrays that are searched where they lie. A file is never changed: a run
// that has translated more writes a new one.
//
// The file's name has the image's build-id, the tool's name and the home; its head the size and date of the weir that wrote it and
// of the image. A file that is not as it should be is as good as none.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/cache.h"
#include "base/fd.h"
#include "elf/image.h"
#include "instrument/lower.h"

namespace weir::engine {

// Program addresses count from the first byte of the image's code, places from that of the arena.
struct ArchivedUnit {
  uint32_t entry, begin, end;  // addresses
  uint32_t offset, size, entry_offset;
  uint32_t first_block, blocks, first_mark, marks;
};

struct ArchivedPair {
  uint32_t app, offset;
  friend auto operator<=>(const ArchivedPair&, const ArchivedPair&) = default;
};

struct ArchivedExit {
  int64_t target;         // address
  uint32_t offset, stub;  // places
  uint16_t pops;
  uint8_t kind, pad[5];
};

// What an archive holds.
struct ArchiveParts {
  std::span<const ArchivedUnit> units;      // by place
  std::span<const ArchivedPair> functions;  // begin of the bounds → unit, sorted
  std::span<const ArchivedPair> entries;    // where direct transfers go: address → place, sorted
  std::span<const ArchivedPair> blocks;     // of units: address → offset in the unit, sorted in each
  std::span<const instrument::Mark> marks;  // of units
  std::span<const ArchivedExit> exits;      // by number
  std::span<const uint32_t> table_pages;    // those that are not empty, of the image's part of the table
  std::span<const std::byte> code;          // of the arena, in whole pages
};

// Which file the code is from: a name for it, and whether it is still the same.
struct ArchiveKey {
  std::string id;  // empty: there can be no archive
  int64_t size = 0;
  timespec changed = {};
};
ArchiveKey key_of(const elf::Image& image);
// A run that has translated hardly more than `kept` units of an archive writes none.
bool is_worth_keeping(size_t units, size_t kept);

class Archive {
 public:
  static constexpr size_t page = 4096;

  // The archive of a file for a tool, where the file's code is `code`; none where there is none.
  static std::shared_ptr<const Archive> open(const ArchiveKey& key, const std::string& tool, AppRange code);
  // Writes a new one, `table_page` giving the pages; quietly does nothing where it cannot.
  static void save(const ArchiveKey& key, const std::string& tool, AppRange code, CachePc arena, const ArchiveParts& parts,
                   uint32_t not_supported, const std::function<const std::byte*(uint32_t)>& table_page);

  const ArchiveParts& parts() const { return parts_; }
  uint32_t not_supported() const { return not_supported_; }
  CachePc arena() const { return arena_; }  // where its code was
  std::span<const std::byte> table_page(uint32_t index) const;
  const Fd& file() const { return fd_; }
  // A copy in shared memory, for processes that may not open the file; -1: there can be none.
  int copy_for_others() const;
  uint64_t code_offset() const;  // in the file
  uint64_t table_offset() const { return table_offset_; }

 private:
  static std::shared_ptr<const Archive> open_file(const std::string& path, const ArchiveKey& key, AppRange code);
  bool is_file(const std::string& path, const ArchiveKey& key, AppRange code) const;

  Fd fd_;
  mutable Fd copy_;
  Mapping file_;
  ArchiveParts parts_;
  uint32_t not_supported_ = 0;
  CachePc arena_;
  uint64_t table_offset_ = 0;
};

}  // namespace weir::engine
