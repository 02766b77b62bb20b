// An entry jumps through a slot of the GOT, and a relocation says what the loader puts into the slot:
//
//   [endbr64] [bnd] jmp [rip + slot]     .plt of old, .plt.got, .plt.sec    the relocation at `slot`
//   [endbr64] push n ; [bnd] jmp .plt    .plt with indirect branch tracking the n-th of .rela.plt
//
// The first entry of .plt calls the loader and has no name. After the x86-64 ABI supplement, "Procedure Linkage Table".
#include "symbols/plt.h"

#include <unordered_map>

namespace weir::symbols {

namespace {

using elf::Bytes;
using elf::Section;

class Relocations {
 public:
  Relocations(const Object& image, std::span<const Function> functions) : image_(image), functions_(functions) {
    uint64_t read = 0;
    for (const Section& s : image.sections) {
      if (s.header.sh_type != SHT_RELA || s.header.sh_link >= image.sections.size()) continue;
      bool is_plt = s.name == ".rela.plt";
      Bytes entries = image.bytes_of(s);
      read += entries.size();
      if (read > image.contents.file.size()) break;  // sections that overlap: a broken file
      for (uint64_t at = 0; auto r = elf::load<Elf64_Rela>(entries, at); at += sizeof *r) {
        uint32_t type = ELF64_R_TYPE(r->r_info);
        if (is_plt) by_index_.push_back({*r, s.header.sh_link});
        if (type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT || type == R_X86_64_IRELATIVE)
          by_slot_[r->r_offset] = {*r, s.header.sh_link};
      }
    }
  }

  std::string name_by_slot(uint64_t slot) const {
    auto found = by_slot_.find(slot);
    return found == by_slot_.end() ? "" : name_of(found->second);
  }
  std::string name_by_index(uint64_t index) const { return index < by_index_.size() ? name_of(by_index_[index]) : ""; }

 private:
  struct Relocation {
    Elf64_Rela rela;
    uint32_t symbol_table;
  };

  std::string name_of(const Relocation& r) const {
    if (ELF64_R_TYPE(r.rela.r_info) == R_X86_64_IRELATIVE) {
      auto resolver = std::ranges::lower_bound(functions_, Vaddr{static_cast<uint64_t>(r.rela.r_addend)}, {},
                                               [](const Function& f) { return f.range.begin; });
      bool found = resolver != functions_.end() && resolver->range.begin.value == static_cast<uint64_t>(r.rela.r_addend);
      return found ? resolver->linkage_name : "";
    }
    const Section& table = image_.sections[r.symbol_table];
    auto symbol = elf::load<Elf64_Sym>(image_.bytes_of(table), ELF64_R_SYM(r.rela.r_info) * sizeof(Elf64_Sym));
    if (!symbol || table.header.sh_link >= image_.sections.size()) return "";
    return std::string(string_at(image_.bytes_of(image_.sections[table.header.sh_link]), symbol->st_name));
  }

  const Object& image_;
  std::span<const Function> functions_;
  std::unordered_map<uint64_t, Relocation> by_slot_;
  std::vector<Relocation> by_index_;
};

std::string name_of_entry(Bytes code, Vaddr begin, const Relocations& relocations) {
  constexpr uint32_t endbr64 = 0xfa1e0ff3;
  constexpr uint8_t bnd = 0xf2, push = 0x68;
  constexpr uint16_t jmp_rip = 0x25ff;
  uint64_t at = elf::load<uint32_t>(code, 0) == endbr64 ? 4 : 0;
  if (elf::load<uint8_t>(code, at) == bnd) ++at;
  if (elf::load<uint16_t>(code, at) == jmp_rip) {
    auto displacement = elf::load<int32_t>(code, at + 2);
    if (displacement) return relocations.name_by_slot((begin + static_cast<int64_t>(at) + 6 + *displacement).value);
  }
  if (elf::load<uint8_t>(code, at) == push) {
    auto index = elf::load<uint32_t>(code, at + 1);
    if (index) return relocations.name_by_index(*index);
  }
  return "";
}

}  // namespace

std::vector<Function> plt_entries(const Object& image, std::span<const Function> functions) {
  Relocations relocations(image, functions);
  std::vector<Function> entries;
  uint64_t read = 0;
  for (const Section& s : image.sections) {
    if (!s.is_code() || !(s.name.starts_with(".plt") || s.name == ".iplt")) continue;
    Bytes bytes = image.bytes_of(s);
    read += bytes.size();
    if (read > image.contents.file.size()) break;
    uint64_t size = s.header.sh_entsize == 8 ? 8 : 16;
    for (uint64_t at = 0; at < bytes.size(); at += size) {
      Bytes code = elf::slice(bytes, at, size);
      Vaddr begin = elf::end_of(s.range().begin, at);
      Function f{.range = {begin, elf::end_of(begin, code.size())}, .kind = Kind::PltEntry};
      std::string name = name_of_entry(code, begin, relocations);
      if (!name.empty()) f.linkage_name = name + "@plt";
      else f.whole = s.name, f.offset = at;
      entries.push_back(std::move(f));
    }
  }
  std::ranges::sort(entries, {}, [](const Function& f) { return f.range.begin; });
  return entries;
}

}  // namespace weir::symbols
