// The symbols of code, of an image and of the files that were stripped from it.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "symbols/object.h"
#include "symbols/symbols.h"

namespace weir::symbols {

struct Symbol {
  Vaddr begin;
  uint64_t size;  // 0: unknown
  Vaddr limit;    // the end of its section
  uint8_t type, binding;
  std::string_view name;  // without its version

  Vaddr end() const { return elf::end_of(begin, size); }
};

// Is this the better name of two at an address? `read` (weak) wins over `__read` (global): it is what people know; `__read` over a local name.
bool is_better(const Symbol& a, const Symbol& b);

class SymbolTable {
 public:
  // Of these files, which outlive this.
  explicit SymbolTable(std::vector<const Object*> files) : files_(std::move(files)) {}

  // All, sorted: of several at an address the one that reaches furthest comes first.
  std::span<const Symbol> all();

  struct Around {
    std::optional<Symbol> before;  // of those that begin before the range and reach into it, the one that reaches furthest
    std::span<const Symbol> inside;  // those that begin in it, sorted; good until the next call
  };
  Around around(VRange range);

 private:
  Around scan(VRange range);
  size_t first_from(Vaddr v);  // in all_, the first that does not begin before v
  std::vector<const Object*> files_;
  int scans_ = 0;
  bool is_sorted_ = false;
  std::vector<Symbol> all_;
  std::vector<uint32_t> furthest_;  // by symbol: of it and those before it, the one that reaches furthest
  std::vector<Symbol> scanned_;
  size_t last_ = 0;  // answer of first_from(): who asks for all asks in ascending order
};

}  // namespace weir::symbols
