// The problem: nearly every program has a few functions without an FDE (crt1.o's), and they run first; sorting half a
// million symbols for their sake would be the longest part of start-up.
//
// So the symbols are asked about one gap between FDEs at a time: a pass over the table that keeps the few symbols inside.
// A file that shows many gaps has its symbols sorted once instead. Invariant: both ways give the same functions.
#include "elf/symbols.h"

#include <tuple>

namespace weir::elf {

namespace {

constexpr int scans_before_sorting = 8;

// The number of symbols that DT_GNU_HASH knows, those it leaves out at the front included: the end of the last chain.
// Header: buckets, first symbol hashed, words of the filter, a shift; then filter (8 each), buckets (4), chains (4).
uint64_t count_by_gnu_hash(Bytes hash) {
  auto buckets = load<uint32_t>(hash, 0), first = load<uint32_t>(hash, 4), words = load<uint32_t>(hash, 8);
  if (!buckets || !first || !words) return 0;
  uint64_t buckets_at = 16 + uint64_t{*words} * 8, chains_at = buckets_at + uint64_t{*buckets} * 4;
  if (chains_at > hash.size()) return 0;
  uint64_t last = 0;
  for (uint64_t i = 0; i < *buckets; ++i) last = std::max<uint64_t>(last, *load<uint32_t>(hash, buckets_at + i * 4));
  if (last < *first || last == 0) return 0;
  // A chain ends at an odd word.
  for (;; ++last) {
    auto link = load<uint32_t>(hash, chains_at + (last - *first) * 4);
    if (!link) return 0;
    if (*link & 1) return last + 1;
  }
}

bool is_function(const Elf64_Sym& s) {
  int type = ELF64_ST_TYPE(s.st_info);
  // Hand-written assembly often leaves out the type.
  if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) return false;
  return s.st_shndx != SHN_UNDEF && s.st_shndx != SHN_ABS;
}

std::string_view name_in(Bytes names, uint64_t at) {
  if (at >= names.size()) return {};
  std::string_view rest(reinterpret_cast<const char*>(names.data()) + at, names.size() - at);
  return rest.substr(0, rest.find('\0'));
}

Symbols::Name kind_of(std::string_view name) {
  if (name.ends_with(".cold")) return Symbols::Name::Part;
  size_t digits = name.find_last_not_of("0123456789") + 1;
  return name.substr(0, digits).ends_with(".cold.") ? Symbols::Name::MaybePart : Symbols::Name::Function;
}

}  // namespace

Bytes dynamic_symbols(const Contents& contents) {
  const Segment* dynamic = contents.find(PT_DYNAMIC);
  if (!dynamic) return {};
  Bytes entries = slice(contents.file, dynamic->offset, dynamic->file_size);
  Bytes symbols;
  uint64_t count = 0;
  for (uint64_t at = 0;; at += sizeof(Elf64_Dyn)) {
    auto entry = load<Elf64_Dyn>(entries, at);
    if (!entry || entry->d_tag == DT_NULL) break;
    if (entry->d_tag == DT_SYMTAB) symbols = contents.at({entry->d_un.d_ptr});
    if (entry->d_tag == DT_GNU_HASH) count = std::max(count, count_by_gnu_hash(contents.at({entry->d_un.d_ptr})));
    // DT_HASH: buckets, chains, …; there is a chain for each symbol.
    if (entry->d_tag == DT_HASH)
      count = std::max<uint64_t>(count, load<uint32_t>(contents.at({entry->d_un.d_ptr}), 4).value_or(0));
  }
  return slice(symbols, 0, count * sizeof(Elf64_Sym));
}

Symbols::Symbols(const Contents& contents, std::span<const Section> sections) : sections_(sections) {
  // An ELF file has at most one table of either type.
  auto add = [&](uint32_t type) {
    auto found = std::ranges::find_if(sections, [&](const Section& s) { return s.header.sh_type == type; });
    if (found == sections.end() || found->header.sh_entsize != sizeof(Elf64_Sym)) return false;
    tables_.push_back(slice(contents.file, found->header.sh_offset, found->header.sh_size));
    if (type == SHT_SYMTAB && found->header.sh_link < sections.size()) {
      const Elf64_Shdr& names = sections[found->header.sh_link].header;
      names_ = slice(contents.file, names.sh_offset, names.sh_size);
    }
    return true;
  };
  add(SHT_SYMTAB);
  if (!add(SHT_DYNSYM)) tables_.push_back(dynamic_symbols(contents));
}

std::vector<Symbols::Symbol> Symbols::scan(VRange range) const {
  std::vector<Symbol> found;
  for (Bytes table : tables_) {
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.size(); at += sizeof(Elf64_Sym)) {
      Elf64_Sym s = *load<Elf64_Sym>(table, at);
      bool reaches_in = Vaddr{s.st_value} < range.begin && end_of({s.st_value}, s.st_size) > range.begin;
      if (!(range.contains({s.st_value}) || reaches_in) || s.st_value == 0) continue;
      if (!is_function(s)) continue;
      Symbol symbol{{s.st_value}, s.st_size, {UINT64_MAX}};
      if (s.st_shndx < sections_.size()) {
        const Section& section = sections_[s.st_shndx];
        // Marks such as _etext are at the end of a section.
        if (!section.is_code() || !section.range().contains(symbol.begin)) continue;
        symbol.limit = section.range().end;
      }
      found.push_back(symbol);
    }
  }
  // Of several at an address the one that reaches furthest comes first.
  std::ranges::sort(found, {}, [](const Symbol& s) { return std::tuple(s.begin, ~s.size, s.limit); });
  return found;
}

std::vector<Symbols::Symbol> Symbols::symbols_in(VRange gap) {
  if (scans_ < scans_before_sorting) {
    ++scans_;
    return scan(gap);
  }
  if (scans_ == scans_before_sorting) {
    ++scans_;
    all_ = scan({{0}, {UINT64_MAX}});
    for (uint32_t i = 0; i < all_.size(); i++) {
      uint32_t before = furthest_.empty() ? i : furthest_.back();
      furthest_.push_back(all_[before].end() < all_[i].end() ? i : before);
    }
  }
  auto first = std::ranges::lower_bound(all_, gap.begin, {}, &Symbol::begin);
  std::vector<Symbol> found;
  if (auto before = static_cast<size_t>(first - all_.begin()); before && all_[furthest_[before - 1]].end() > gap.begin)
    found.push_back(all_[furthest_[before - 1]]);
  found.insert(found.end(), first, std::ranges::lower_bound(all_, gap.end, {}, &Symbol::begin));
  return found;
}

Symbols::Name Symbols::name_at(Vaddr v) {
  if (!names_at_) {
    names_at_.emplace();
    for (Bytes table : tables_) {
      bool has_parts = !names_.empty() && table.data() == tables_[0].data();
      for (uint64_t at = 0; auto s = load<Elf64_Sym>(table, at); at += sizeof *s)
        if (is_function(*s))
          names_at_->emplace_back(Vaddr{s->st_value}, has_parts ? kind_of(name_in(names_, s->st_name)) : Name::Function);
    }
    std::ranges::sort(*names_at_);
  }
  auto after = std::ranges::upper_bound(*names_at_, std::pair(v, Name::Function));
  return after == names_at_->begin() || std::prev(after)->first != v ? Name::None : std::prev(after)->second;
}

const std::vector<VRange>& Symbols::functions_in(VRange gap) {
  auto [entry, fresh] = functions_.try_emplace(gap);
  std::vector<VRange>& functions = entry->second;
  if (!fresh) return functions;
  std::vector<Symbol> symbols = symbols_in(gap);
  for (size_t i = 0; i < symbols.size(); ++i) {
    const Symbol& s = symbols[i];
    if (s.begin < gap.begin) {  // it has a hole in its FDEs here
      Vaddr end = std::min(s.end(), gap.end);
      if (functions.empty()) functions.push_back({gap.begin, end});
      else functions.back().end = std::max(functions.back().end, end);
      continue;
    }
    // Another name, or a label inside.
    if (!functions.empty() && s.begin < functions.back().end) continue;
    Vaddr end = s.end();
    if (s.size == 0) {
      size_t next = i + 1;
      while (next < symbols.size() && symbols[next].begin == s.begin) ++next;
      end = next < symbols.size() ? std::min(s.limit, symbols[next].begin) : s.limit;
    }
    functions.push_back({s.begin, std::min(end, gap.end)});
  }
  return functions;
}

}  // namespace weir::elf
