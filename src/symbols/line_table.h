// The line table of one compilation unit.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "symbols/reader.h"
#include "symbols/symbols.h"

namespace weir::symbols {

inline constexpr uint32_t none = UINT32_MAX;

struct LineSections {
  Reader lines, line_strings, strings;  // .debug_line, .debug_line_str, .debug_str, decompressed
};

// From `begin` to the begin of the next row.
struct LineRow {
  Vaddr begin;
  uint32_t file = none;  // by its number in the table; none: a hole
  uint32_t line : 31 = 0;
  uint32_t is_statement : 1 = 0;
};

// A unit names hundreds of files and needs few: they are put together when asked for.
struct SourceFile {
  std::string_view directory, name;  // in the sections
};

struct LineTable {
  std::vector<SourceFile> files;  // by number
  std::vector<LineRow> rows;      // sorted

  // A normalised path, empty where the number means no file. `directory` is where the compiler ran.
  std::string path_of(uint64_t file, std::string_view directory) const;
};

// The table at `offset`, as far as it makes sense. Sequences that begin where `is_code` says no are left out: the linker
// has dropped their functions.
LineTable read_line_table(const LineSections& sections, uint64_t offset, const std::function<bool(Vaddr)>& is_code);

}  // namespace weir::symbols
