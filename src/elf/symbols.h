// Where functions begin and end according to the symbols, for code that has no FDE.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "elf/contents.h"

namespace weir::elf {

// .dynsym by the dynamic segment, also of a file without section headers: its length is that of its hash table.
Bytes dynamic_symbols(const Contents& contents);

class Symbols {
 public:
  // Neither argument is copied: both outlive this.
  Symbols(const Contents& contents, std::span<const Section> sections);

  // The functions that begin inside `gap`, sorted and apart from each other, and the rest of one that began before it. `gap` lies in
  // an executable segment.
  const std::vector<VRange>& functions_in(VRange gap);

  // The symbol that begins at `v`. "NAME.cold" is of a part of NAME: the compiler put there what it takes for rare, and jumps to it.
  // "NAME.cold.1" may be such a part, or a function that is called.
  enum class Name : uint8_t { None, MaybePart, Part, Function };
  Name name_at(Vaddr v);

 private:
  struct Symbol {
    Vaddr begin;
    uint64_t size;  // 0: unknown
    Vaddr limit;    // the end of its section

    Vaddr end() const { return end_of(begin, size); }
  };
  std::vector<Symbol> scan(VRange range) const;
  std::vector<Symbol> symbols_in(VRange gap);

  std::span<const Section> sections_;
  std::vector<Bytes> tables_;  // arrays of Elf64_Sym
  int scans_ = 0;
  std::vector<Symbol> all_;         // sorted; filled once scanning for each gap has become too much work
  std::vector<uint32_t> furthest_;  // of all_ up to each, the one that reaches furthest
  std::map<VRange, std::vector<VRange>> functions_;
  Bytes names_;  // of .symtab, which is the first table then; the other one has no parts
  std::optional<std::vector<std::pair<Vaddr, Name>>> names_at_;  // sorted; made when first asked for
};

}  // namespace weir::elf
