// The problem: a library has a hundred thousand symbols, and a sampled profile asks for some ten of them. To read and sort them all takes a hundred times as
// long as one pass over the table that keeps the few around an address.
//
// So the first questions are answered by such passes. When they have taken about as long as sorting would, all are sorted.
// Invariant: both ways give the same symbols.
#include "symbols/symbol_table.h"

#include <algorithm>
#include <tuple>

namespace weir::symbols {

namespace {

using elf::Bytes;
using elf::Section;

constexpr int scans_before_sorting = 64;

bool is_exported(const Symbol& s) { return s.binding != STB_LOCAL; }

auto rank(const Symbol& s) {
  size_t underscores = std::min(s.name.find_first_not_of('_'), s.name.size());
  return std::tuple(s.type == STT_NOTYPE, s.size == 0, !is_exported(s), underscores, s.binding == STB_WEAK, s.name.size(),
                    s.name);
}

// "memcpy@@GLIBC_2.14" -> "memcpy"
std::string_view without_version(std::string_view name) { return name.substr(0, name.find('@', 1)); }

// Those of one table that are `wanted`, which is asked first: it is quick.
void read_symbols(const Object& object, const Section& table, auto wanted, std::vector<Symbol>& symbols) {
  if (table.header.sh_link >= object.sections.size() || table.header.sh_entsize != sizeof(Elf64_Sym)) return;
  Bytes entries = object.bytes_of(table), strings = object.bytes_of(object.sections[table.header.sh_link]);
  for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= entries.size(); at += sizeof(Elf64_Sym)) {
    Elf64_Sym s = *elf::load<Elf64_Sym>(entries, at);
    if (!wanted(s)) continue;
    uint8_t type = ELF64_ST_TYPE(s.st_info);
    if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) continue;
    if (s.st_value == 0 || s.st_shndx == SHN_UNDEF || s.st_shndx >= object.sections.size()) continue;
    const Section& section = object.sections[s.st_shndx];
    // Marks such as _etext are at the end of a section.
    if (!section.is_code() || !section.range().contains({s.st_value})) continue;
    std::string_view name = without_version(string_at(strings, s.st_name));
    if (name.empty()) continue;
    symbols.push_back(
        {{s.st_value}, s.st_size, section.range().end, type, static_cast<uint8_t>(ELF64_ST_BIND(s.st_info)), name});
  }
}

std::vector<Symbol> read_symbols(std::span<const Object* const> files, auto wanted) {
  std::vector<Symbol> symbols;
  for (const Object* object : files) {
    // An ELF file has at most one table of either type.
    for (uint32_t type : {SHT_SYMTAB, SHT_DYNSYM}) {
      auto table = std::ranges::find_if(object->sections, [&](const Section& s) { return s.header.sh_type == type; });
      if (table != object->sections.end()) read_symbols(*object, *table, wanted, symbols);
    }
  }
  std::ranges::sort(symbols, [](const Symbol& a, const Symbol& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.size != b.size ? a.size > b.size : rank(a) < rank(b);
  });
  return symbols;
}

}  // namespace

bool is_better(const Symbol& a, const Symbol& b) { return rank(a) < rank(b); }

std::span<const Symbol> SymbolTable::all() {
  if (is_sorted_) return all_;
  is_sorted_ = true;
  all_ = read_symbols(files_, [](const Elf64_Sym&) { return true; });
  furthest_.reserve(all_.size());
  for (uint32_t i = 0; i < all_.size(); i++) {
    uint32_t before = i ? furthest_.back() : i;
    furthest_.push_back(all_[before].end() < all_[i].end() ? i : before);
  }
  return all_;
}

SymbolTable::Around SymbolTable::around(VRange range) {
  if (!is_sorted_ && scans_++ < scans_before_sorting) return scan(range);
  all();
  size_t first = first_from(range.begin), end = first_from(range.end);
  Around found{{}, std::span(all_).subspan(first, end - first)};
  if (first && all_[furthest_[first - 1]].end() > range.begin) found.before = all_[furthest_[first - 1]];
  return found;
}

size_t SymbolTable::first_from(Vaddr v) {
  size_t low = last_ < all_.size() && all_[last_].begin < v ? last_ + 1 : 0, high = all_.size();
  if (low)
    for (size_t step = 1; low + step < high; step *= 2) {
      if (all_[low + step].begin >= v) high = low + step;
      else low += step;
    }
  auto part = std::span(all_).subspan(low, high - low);
  return last_ = low + static_cast<size_t>(std::ranges::lower_bound(part, v, {}, &Symbol::begin) - part.begin());
}

SymbolTable::Around SymbolTable::scan(VRange range) {
  scanned_ = read_symbols(files_, [range](const Elf64_Sym& s) {
    Vaddr begin{s.st_value};
    return begin < range.end && (begin >= range.begin || elf::end_of(begin, s.st_size) > range.begin);
  });
  auto first = std::ranges::lower_bound(scanned_, range.begin, {}, &Symbol::begin);
  Around found{{}, {first, scanned_.end()}};
  for (auto s = scanned_.begin(); s != first; ++s)
    if (!found.before || s->end() > found.before->end()) found.before = *s;
  return found;
}

}  // namespace weir::symbols
