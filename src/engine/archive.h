// Translations of earlier runs, one file an image, in the user's cache directory.
//
// Code that runs once costs more to translate than to run; but the same libraries and programs run again and again. A unit
// is kept with what depends on where program and code lie taken out (see instrument::Reloc), so that it can be put down
// anywhere. The code that it was made from is compared by a checksum. The name of the file has the image's build-id and the tool's; its head has the size and date of the weir that wrote it. A
// file that is not as it should be is as good as none.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "elf/image.h"
#include "instrument/lower.h"

namespace weir::engine {

uint64_t checksum_of(std::span<const std::byte> bytes);

// A unit as it lies in an archive: this head, then blocks, table, exits, marks, relocs and code. Addresses are the file's own
// (less the load bias); those of blocks, table and marks count from the begin of the bounds.
struct ArchivedUnit {
  uint64_t checksum;  // of all that follows
  uint32_t total, code_size;
  uint64_t entry, begin, end;
  uint64_t source;  // checksum of the program's code in [begin, end)
  uint32_t entry_offset, has_high;
  uint32_t blocks, table, exits, marks, relocs;
  uint32_t line_offset;  // of the code in a cache line: displacements that are patched do not cross one
};

struct ArchivedExit {
  uint64_t target;  // address in the file
  uint32_t offset, stub;
  uint16_t pops;
  uint8_t kind, pad[5];
};

struct ArchivedPair {
  uint32_t app, offset;
};

// Read access to the parts of a unit.
class UnitView {
 public:
  explicit UnitView(std::span<const std::byte> bytes) : bytes_(bytes) {}
  bool is_sound() const;
  const ArchivedUnit& head() const { return *reinterpret_cast<const ArchivedUnit*>(bytes_.data()); }
  std::span<const ArchivedPair> blocks() const { return part<ArchivedPair>(0, head().blocks); }
  std::span<const ArchivedPair> table() const { return part<ArchivedPair>(blocks_end(), head().table); }
  std::span<const ArchivedExit> exits() const { return part<ArchivedExit>(table_end(), head().exits); }
  std::span<const instrument::Mark> marks() const { return part<instrument::Mark>(exits_end(), head().marks); }
  std::span<const instrument::Reloc> relocs() const { return part<instrument::Reloc>(marks_end(), head().relocs); }
  std::span<const std::byte> code() const { return bytes_.subspan(sizeof(ArchivedUnit) + relocs_end(), head().code_size); }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  template <class T>
  std::span<const T> part(size_t offset, size_t count) const {
    return {reinterpret_cast<const T*>(bytes_.data() + sizeof(ArchivedUnit) + offset), count};
  }
  size_t blocks_end() const { return head().blocks * sizeof(ArchivedPair); }
  size_t table_end() const { return blocks_end() + head().table * sizeof(ArchivedPair); }
  size_t exits_end() const { return table_end() + head().exits * sizeof(ArchivedExit); }
  size_t marks_end() const { return exits_end() + head().marks * sizeof(instrument::Mark); }
  size_t relocs_end() const { return marks_end() + head().relocs * sizeof(instrument::Reloc); }
  std::span<const std::byte> bytes_;
};

class Archive {
 public:
  // The archive of an image for a tool: empty where there is no file yet, none where the image has no build-id or there is no place.
  static std::shared_ptr<Archive> open(const elf::Image& image, const std::string& tool);

  // The unit with this entry, if it is kept and sound.
  std::optional<UnitView> find(elf::Vaddr entry) const;
  // The unit that was first used next after this one.
  std::optional<UnitView> next(const UnitView& unit) const;
  // A unit to be kept from now on.
  void add(const instrument::Lowered& lowered, std::span<const std::byte> code, std::span<const std::byte> source,
           AppPc entry, AppRange bounds, CachePc base, uint64_t bias, uint32_t first_exit);
  // Writes the file anew, if there is anything new; quietly does nothing where it cannot.
  void save();

 private:
  struct Index {
    uint64_t entry;
    uint64_t offset, size;
  };
  std::string path_;
  Mapping file_;
  std::span<const Index> index_;  // of the file, by entry; the units themselves lie in the order of their first use
  std::vector<std::vector<std::byte>> added_;
};

}  // namespace weir::engine
