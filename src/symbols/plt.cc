// An entry jumps through a slot of the GOT, and a relocation says what the loader puts into the slot:
//
//   [endbr64] [bnd] jmp [rip + slot]     .plt of old, .plt.got, .plt.sec    the relocation at `slot`
//   [endbr64] push n ; [bnd] jmp .plt    .plt with indirect branch tracking the n-th of .rela.plt
//
// The first entry of .plt calls the loader and has no name. After the x86-64 ABI supplement, "Procedure Linkage Table".
#include "symbols/plt.h"

#include <algorithm>
#include <ranges>

namespace weir::symbols {

namespace {

using elf::Bytes;
using elf::Section;

bool fills_slot(const Elf64_Rela& r) {
  uint32_t type = ELF64_R_TYPE(r.r_info);
  return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT || type == R_X86_64_IRELATIVE;
}

}  // namespace

Plt::Plt(const Object& image, NameOf resolver) : image_(image), resolver_(std::move(resolver)) {
  uint64_t code = 0, read = 0, size = image.contents.file.size();  // sections that overlap: a broken file
  for (const Section& s : image.sections) {
    if (s.is_code() && (s.name.starts_with(".plt") || s.name == ".iplt") && code <= size) {
      Bytes bytes = image.bytes_of(s);
      code += bytes.size();
      if (code <= size) tables_.push_back({&s, bytes, s.header.sh_entsize == 8 ? 8u : 16u});
    }
    if (s.header.sh_type == SHT_RELA && s.header.sh_link < image.sections.size() && read <= size) {
      Bytes entries = image.bytes_of(s);
      read += entries.size();
      if (read <= size) relocations_.push_back({entries, s.header.sh_link, s.name == ".rela.plt"});
    }
  }
}

void Plt::index_slots() {
  has_slots_ = true;
  for (const Relocations& table : relocations_)
    for (uint64_t at = 0; auto r = elf::load<Elf64_Rela>(table.entries, at); at += sizeof *r)
      if (fills_slot(*r)) slots_[r->r_offset] = {*r, table.symbol_table};
}

// The last one is looked for, from the end: there linkers put those of slots.
std::optional<Plt::Relocation> Plt::by_slot(uint64_t slot) const {
  if (has_slots_) {
    auto found = slots_.find(slot);
    return found == slots_.end() ? std::nullopt : std::optional(found->second);
  }
  for (const Relocations& table : relocations_ | std::views::reverse)
    for (uint64_t i = table.entries.size() / sizeof(Elf64_Rela); i-- > 0;)
      if (auto r = *elf::load<Elf64_Rela>(table.entries, i * sizeof(Elf64_Rela)); r.r_offset == slot && fills_slot(r))
        return Relocation{r, table.symbol_table};
  return {};
}

std::optional<Plt::Relocation> Plt::by_index(uint64_t index) const {
  for (const Relocations& table : relocations_) {
    if (!table.is_plt) continue;
    uint64_t count = table.entries.size() / sizeof(Elf64_Rela);
    if (index < count)
      return Relocation{*elf::load<Elf64_Rela>(table.entries, index * sizeof(Elf64_Rela)), table.symbol_table};
    index -= count;
  }
  return {};
}

std::string Plt::name_of(const std::optional<Relocation>& r) const {
  if (!r) return "";
  if (ELF64_R_TYPE(r->rela.r_info) == R_X86_64_IRELATIVE) return resolver_({static_cast<uint64_t>(r->rela.r_addend)});
  const Section& table = image_.sections[r->symbol_table];
  auto symbol = elf::load<Elf64_Sym>(image_.bytes_of(table), ELF64_R_SYM(r->rela.r_info) * sizeof(Elf64_Sym));
  if (!symbol || table.header.sh_link >= image_.sections.size()) return "";
  return std::string(string_at(image_.bytes_of(image_.sections[table.header.sh_link]), symbol->st_name));
}

std::string Plt::name_of_entry(Bytes code, Vaddr begin) const {
  constexpr uint32_t endbr64 = 0xfa1e0ff3;
  constexpr uint8_t bnd = 0xf2, push = 0x68;
  constexpr uint16_t jmp_rip = 0x25ff;
  uint64_t at = elf::load<uint32_t>(code, 0) == endbr64 ? 4 : 0;
  if (elf::load<uint8_t>(code, at) == bnd) ++at;
  if (elf::load<uint16_t>(code, at) == jmp_rip) {
    auto displacement = elf::load<int32_t>(code, at + 2);
    if (displacement) return name_of(by_slot((begin + static_cast<int64_t>(at) + 6 + *displacement).value));
  }
  if (elf::load<uint8_t>(code, at) == push) {
    auto index = elf::load<uint32_t>(code, at + 1);
    if (index) return name_of(by_index(*index));
  }
  return "";
}

Function Plt::entry(const Table& table, uint64_t at) const {
  Bytes code = elf::slice(table.bytes, at, table.entry_size);
  Vaddr begin = elf::end_of(table.range().begin, at);
  Function f{.range = {begin, elf::end_of(begin, code.size())}, .kind = Kind::PltEntry};
  std::string name = name_of_entry(code, begin);
  if (!name.empty()) f.linkage_name = name + "@plt";
  else f.whole = table.section->name, f.offset = at;
  return f;
}

std::vector<Function> Plt::entries() {
  if (!has_slots_) index_slots();
  std::vector<Function> all;
  for (const Table& table : tables_)
    for (uint64_t at = 0; at < table.bytes.size(); at += table.entry_size) all.push_back(entry(table, at));
  std::ranges::sort(all, {}, [](const Function& f) { return f.range.begin; });
  return all;
}

std::optional<Function> Plt::entry_at(Vaddr v) const {
  for (const Table& table : tables_)
    if (table.range().contains(v)) {
      auto at = static_cast<uint64_t>(v - table.range().begin);
      return entry(table, at - at % table.entry_size);
    }
  return {};
}

std::vector<VRange> Plt::ranges() const {
  std::vector<VRange> ranges;
  for (const Table& table : tables_) ranges.push_back(table.range());
  return ranges;
}

}  // namespace weir::symbols
