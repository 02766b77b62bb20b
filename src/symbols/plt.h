// The entries of procedure linkage tables, named after what they lead to.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "symbols/object.h"
#include "symbols/symbols.h"

namespace weir::symbols {

class Plt {
 public:
  // The linkage name of the function that begins there: of the resolver that an entry without a symbol leads to.
  using NameOf = std::function<std::string(Vaddr)>;
  // The image is not copied: it outlives this.
  Plt(const Object& image, NameOf resolver);

  // All, sorted.
  std::vector<Function> entries();
  std::optional<Function> entry_at(Vaddr v) const;
  // Where they are.
  std::vector<VRange> ranges() const;

 private:
  struct Table {
    const elf::Section* section;
    elf::Bytes bytes;
    uint64_t entry_size;
    VRange range() const { return {section->range().begin, elf::end_of(section->range().begin, bytes.size())}; }
  };
  struct Relocations {
    elf::Bytes entries;
    uint32_t symbol_table;
    bool is_plt;
  };
  struct Relocation {
    Elf64_Rela rela;
    uint32_t symbol_table;
  };
  Function entry(const Table& table, uint64_t at) const;
  std::string name_of_entry(elf::Bytes code, Vaddr begin) const;
  std::optional<Relocation> by_slot(uint64_t slot) const;
  std::optional<Relocation> by_index(uint64_t index) const;
  std::string name_of(const std::optional<Relocation>& r) const;
  void index_slots();

  const Object& image_;
  NameOf resolver_;
  std::vector<Table> tables_;
  std::vector<Relocations> relocations_;
  std::unordered_map<uint64_t, Relocation> slots_;  // where all are asked for
  bool has_slots_ = false;
};

}  // namespace weir::symbols
