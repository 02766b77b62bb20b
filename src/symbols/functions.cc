// The problem: one list of functions from three sources that overlap and contradict each other.
//
// Bounds and names are found apart. Bounds follow the rules of elf/image.cc, so that what was counted is what is named.
// A name is that of
//   1. the best symbol at the first address of the function     (several names for one function are common)
//   2. the symbol that covers the first address, "name+0x28"    (assembly with several FDEs in one function, and holes between them)
//   3. the symbol inside that has at least half of the function (an FDE that begins with padding)
// Invariant: the list is sorted and no two functions share an address.
#include "symbols/functions.h"

#include <tuple>

#include "elf/eh_frame.h"
#include "symbols/demangle.h"
#include "symbols/plt.h"

namespace weir::symbols {

namespace {

using elf::Bytes;
using elf::Section;

struct Symbol {
  Vaddr begin;
  uint64_t size;  // 0: unknown
  Vaddr limit;    // the end of its section
  uint8_t type, binding;
  std::string_view name;

  Vaddr end() const { return elf::end_of(begin, size); }
};

bool is_exported(const Symbol& s) { return s.binding != STB_LOCAL; }

// Smaller is better. `read` (weak) wins over `__read` (global): it is what people know; `__read` over a local name.
auto rank(const Symbol& s) {
  size_t underscores = std::min(s.name.find_first_not_of('_'), s.name.size());
  return std::tuple(s.type == STT_NOTYPE, s.size == 0, !is_exported(s), underscores, s.binding == STB_WEAK, s.name.size(),
                    s.name);
}

// "memcpy@@GLIBC_2.14" -> "memcpy"
std::string_view without_version(std::string_view name) { return name.substr(0, name.find('@', 1)); }

void read_symbols(const Object& object, const Section& table, std::vector<Symbol>& symbols) {
  if (table.header.sh_link >= object.sections.size() || table.header.sh_entsize != sizeof(Elf64_Sym)) return;
  Bytes entries = object.bytes_of(table), strings = object.bytes_of(object.sections[table.header.sh_link]);
  for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= entries.size(); at += sizeof(Elf64_Sym)) {
    Elf64_Sym s = *elf::load<Elf64_Sym>(entries, at);
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

std::vector<Symbol> read_symbols(std::span<const Object* const> tables) {
  std::vector<Symbol> symbols;
  for (const Object* object : tables) {
    // An ELF file has at most one table of either type.
    for (uint32_t type : {SHT_SYMTAB, SHT_DYNSYM}) {
      auto table = std::ranges::find_if(object->sections, [&](const Section& s) { return s.header.sh_type == type; });
      if (table != object->sections.end()) read_symbols(*object, *table, symbols);
    }
  }
  // Of several at an address the one that reaches furthest comes first.
  std::ranges::sort(symbols, [](const Symbol& a, const Symbol& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.size != b.size ? a.size > b.size : rank(a) < rank(b);
  });
  return symbols;
}

// Of the symbols that begin before an address, the one that reaches furthest. Addresses are asked for in ascending order.
class Covering {
 public:
  explicit Covering(std::span<const Symbol> symbols) : symbols_(symbols) {}
  const Symbol* before(Vaddr v) {
    for (; next_ < symbols_.size() && symbols_[next_].begin < v; ++next_)
      if (!furthest_ || symbols_[next_].end() > furthest_->end()) furthest_ = &symbols_[next_];
    return furthest_ && furthest_->end() > v ? furthest_ : nullptr;
  }
  size_t next() const { return next_; }  // the first symbol that does not begin before the address

 private:
  std::span<const Symbol> symbols_;
  size_t next_ = 0;
  const Symbol* furthest_ = nullptr;
};

// The functions that symbols make in a gap between FDEs. One that began before the gap may have a hole in its FDEs there.
void add_gap(std::span<const Symbol> symbols, Covering& covering, VRange gap, std::vector<VRange>& bounds) {
  if (const Symbol* s = covering.before(gap.begin)) bounds.push_back({gap.begin, std::min(s->end(), gap.end)});
  auto first = std::ranges::lower_bound(symbols, gap.begin, {}, &Symbol::begin);
  for (auto s = first; s != symbols.end() && s->begin < gap.end; ++s) {
    // Another name, or a label inside.
    if (!bounds.empty() && s->begin < bounds.back().end) continue;
    Vaddr end = s->end();
    if (s->size == 0) {
      auto next = std::ranges::upper_bound(s, symbols.end(), s->begin, {}, &Symbol::begin);
      end = next == symbols.end() ? s->limit : std::min(s->limit, next->begin);
    }
    end = std::min(end, gap.end);
    if (s->begin < end) bounds.push_back({s->begin, end});
  }
}

// FDEs and the symbols between them, of one executable segment.
void add_segment(elf::EhFrame& frames, std::span<const Symbol> symbols, VRange code, size_t& most,
                 std::vector<VRange>& bounds) {
  Covering covering(symbols);
  for (Vaddr v = code.begin; v < code.end && most > 0; --most) {
    elf::EhFrame::Place place = frames.find(v);
    if (place.function) {
      bounds.push_back({v, std::min(place.function->end, code.end)});
      v = place.function->end;
    } else {
      add_gap(symbols, covering, {v, std::min(place.gap.end, code.end)}, bounds);
      v = place.gap.end;
    }
  }
}

std::vector<VRange> list_bounds(const Object& image, std::span<const Symbol> symbols) {
  elf::EhFrame frames(image.contents, image.sections);
  // An FDE takes 16 bytes of the file and an entry of the table 8: a broken table cannot make us look for more.
  size_t most = image.contents.file.size() / 4;
  std::vector<VRange> bounds;
  for (VRange code : image.code()) add_segment(frames, symbols, code, most, bounds);
  return bounds;
}

std::string_view file_name(const Object& image) { return std::string_view(image.path).substr(image.path.rfind('/') + 1); }

// Names for sorted ranges in one pass over the symbols.
class Namer {
 public:
  Namer(const Object& image, std::span<const Symbol> symbols) : image_(image), symbols_(symbols), covering_(symbols) {}

  Function name(VRange range) {
    const Symbol* covering = covering_.before(range.begin);
    Function f{.range = range};
    if (const Symbol* best = best_at(range.begin)) {
      f.linkage_name = best->name;
      f.kind = best->type == STT_GNU_IFUNC ? Kind::Resolver : Kind::Function;
    } else if (covering) {
      f.whole = covering->name;
      f.offset = static_cast<uint64_t>(range.begin - covering->begin);
    } else if (const Symbol* inside = largest_inside(range)) {
      f.linkage_name = inside->name;
    } else {
      f.whole = file_name(image_);
      f.offset = range.begin.value;
    }
    return f;
  }

 private:
  const Symbol* best_at(Vaddr v) const {
    const Symbol* best = nullptr;
    bool is_resolver = false;
    for (size_t i = covering_.next(); i < symbols_.size() && symbols_[i].begin == v; ++i) {
      is_resolver |= symbols_[i].type == STT_GNU_IFUNC;
      if (!best || rank(symbols_[i]) < rank(*best)) best = &symbols_[i];
    }
    // The name that programs use is the IFUNC's; the resolver may have one of its own besides.
    if (is_resolver && best->type != STT_GNU_IFUNC)
      for (size_t i = covering_.next(); symbols_[i].begin == v; ++i)
        if (symbols_[i].type == STT_GNU_IFUNC) return &symbols_[i];
    return best;
  }

  const Symbol* largest_inside(VRange range) const {
    for (size_t i = covering_.next(); i < symbols_.size() && symbols_[i].begin < range.end; ++i)
      if (std::min(symbols_[i].end(), range.end) - symbols_[i].begin >= static_cast<int64_t>((range.size() + 1) / 2))
        return &symbols_[i];
    return nullptr;
  }

  const Object& image_;
  std::span<const Symbol> symbols_;
  Covering covering_;
};

// Entries of PLTs take the place of what covers them.
std::vector<Function> merge(std::vector<Function> functions, std::vector<Function> entries) {
  std::vector<Function> merged;
  merged.reserve(functions.size() + entries.size());
  auto entry = entries.begin();
  Vaddr end;
  auto add = [&](Function f) {
    if (f.range.begin < end || f.range.begin >= f.range.end) return;
    end = f.range.end;
    merged.push_back(std::move(f));
  };
  for (Function& f : functions) {
    while (entry != entries.end() && entry->range.begin <= f.range.begin) add(std::move(*entry++));
    if (entry != entries.end()) f.range.end = std::min(f.range.end, entry->range.begin);
    add(std::move(f));
  }
  while (entry != entries.end()) add(std::move(*entry++));
  return merged;
}

}  // namespace

std::string unnamed(const Object& image, Vaddr v) { return fmt::format("{}+{:#x}", file_name(image), v.value); }

const std::string& Function::name() const {
  constexpr std::string_view at_plt = "@plt";
  if (!made_name.empty()) return made_name;
  if (linkage_name.empty()) made_name = fmt::format("{}+{:#x}", demangle(whole), offset);
  else if (kind == Kind::PltEntry)
    made_name = demangle(linkage_name.substr(0, linkage_name.size() - at_plt.size())).append(at_plt);
  else made_name = demangle(linkage_name);
  return made_name;
}

std::vector<Function> list_functions(const Object& image, std::span<const Object* const> tables) {
  std::vector<Symbol> symbols = read_symbols(tables);
  std::vector<Function> functions;
  std::vector<VRange> bounds = list_bounds(image, symbols);
  functions.reserve(bounds.size());
  Namer namer(image, symbols);
  for (VRange range : bounds) functions.push_back(namer.name(range));
  std::vector<Function> entries = plt_entries(image, functions);
  return merge(std::move(functions), std::move(entries));
}

}  // namespace weir::symbols
