// An ELF file as libelf has it, and the same bytes for our own checked readers.
#pragma once

#include <libelf.h>

#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "elf/contents.h"

namespace weir::symbols {

struct EndElf {
  void operator()(Elf* elf) const { elf_end(elf); }
};
using ElfHandle = std::unique_ptr<Elf, EndElf>;

struct Object {
  std::string path;
  std::vector<std::byte> owned;  // the bytes, where they do not come from a file
  Fd fd;
  ElfHandle elf;
  elf::Contents contents;
  std::vector<elf::Section> sections;
  std::string build_id;  // hexadecimal, may be empty

  const elf::Section* section(std::string_view name) const;
  elf::Bytes bytes_of(const elf::Section& section) const;
  // The addresses of the executable segments, sorted and apart from each other.
  std::vector<elf::VRange> code() const;
  bool has_dwarf() const { return section(".debug_info") || section(".zdebug_info"); }
};

// The string at an offset of a string table.
std::string_view string_at(elf::Bytes strings, uint64_t offset);

// All fail where this is no ELF file for x86-64.
enum class Packing { Plain, Compressed };
Result<std::unique_ptr<Object>> open_object(const std::string& path);
Result<std::unique_ptr<Object>> open_object(Fd fd, const std::string& path, Packing packing = Packing::Plain);
Result<std::unique_ptr<Object>> object_from_memory(std::vector<std::byte> bytes, const std::string& path);

}  // namespace weir::symbols
