// After the System V ABI ("Symbol Table", "Dynamic Section"), and for versions and the hash table the LSB Core Specification.
#include "symbols/named.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "base/text.h"
#include "elf/symbols.h"
#include "symbols/debug_file.h"
#include "x86/insn.h"

namespace weir::symbols {

namespace {

using elf::Bytes;
using elf::load;

bool is_glob(std::string_view text) { return text.find_first_of("*?") != text.npos; }

bool matches(std::string_view glob, std::string_view text) {
  size_t g = 0, t = 0, star = glob.npos, from = 0;
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*') star = g++, from = t;
    else if (g < glob.size() && (glob[g] == '?' || glob[g] == text[t])) g++, t++;
    else if (star != glob.npos) g = star + 1, t = ++from;
    else return false;
  }
  return glob.find_first_not_of('*', g) == glob.npos;
}

// "memcpy@@GLIBC_2.14", "memcpy@GLIBC_2.2.5", "memcpy"
struct Name {
  std::string_view symbol, version;
  explicit Name(std::string_view text) : symbol(text.substr(0, text.find('@', 1))) {
    if (symbol.size() < text.size())
      version = text.substr(std::min(text.find_first_not_of('@', symbol.size()), text.size()));
  }
};

uint32_t gnu_hash(std::string_view name) {
  uint32_t hash = 5381;
  for (char c : name) hash = hash * 33 + static_cast<uint8_t>(c);
  return hash;
}

// What the dynamic segment says of symbols.
struct Dynamic {
  Bytes symbols, strings, hash, versions, definitions;
  std::string_view soname;
  std::vector<std::pair<uint16_t, std::string_view>> version_names;
  std::vector<Bytes> relocations;

  explicit Dynamic(const elf::Contents& contents);
  std::string name_of(uint64_t index, const Elf64_Sym& symbol) const;

 private:
  void read_versions();
};

Dynamic::Dynamic(const elf::Contents& contents) {
  const elf::Segment* dynamic = contents.find(PT_DYNAMIC);
  if (!dynamic) return;
  Bytes entries = elf::slice(contents.file, dynamic->offset, dynamic->file_size);
  uint64_t soname_at = UINT64_MAX, strings_size = 0, table = 0, table_size = 0, plt = 0, plt_size = 0;
  for (uint64_t at = 0; auto entry = load<Elf64_Dyn>(entries, at); at += sizeof *entry) {
    if (entry->d_tag == DT_NULL) break;
    uint64_t value = entry->d_un.d_val;
    switch (entry->d_tag) {
      case DT_STRTAB: strings = contents.at({value}); break;
      case DT_STRSZ: strings_size = value; break;
      case DT_GNU_HASH: hash = contents.at({value}); break;
      case DT_VERSYM: versions = contents.at({value}); break;
      case DT_VERDEF: definitions = contents.at({value}); break;
      case DT_SONAME: soname_at = value; break;
      case DT_RELA: table = value; break;
      case DT_RELASZ: table_size = value; break;
      case DT_JMPREL: plt = value; break;
      case DT_PLTRELSZ: plt_size = value; break;
      default: break;
    }
  }
  strings = elf::slice(strings, 0, strings_size);
  symbols = elf::dynamic_symbols(contents);
  soname = string_at(strings, soname_at);
  if (table) relocations.push_back(elf::slice(contents.at({table}), 0, table_size));
  if (plt) relocations.push_back(elf::slice(contents.at({plt}), 0, plt_size));
  read_versions();
}

void Dynamic::read_versions() {
  size_t most = definitions.size() / sizeof(Elf64_Verdef);
  for (uint64_t at = 0; version_names.size() < most;) {
    auto definition = load<Elf64_Verdef>(definitions, at);
    if (!definition) return;
    if (auto name = load<Elf64_Verdaux>(definitions, at + definition->vd_aux))
      version_names.emplace_back(definition->vd_ndx, string_at(strings, name->vda_name));
    if (!definition->vd_next) return;
    at += definition->vd_next;
  }
}

std::string Dynamic::name_of(uint64_t index, const Elf64_Sym& symbol) const {
  constexpr uint16_t hidden = 0x8000, first_of_file = 2;  // (0 and 1: none)
  std::string name(string_at(strings, symbol.st_name));
  auto version = load<uint16_t>(versions, 2 * index);
  if (!version || (*version & ~hidden) < first_of_file) return name;
  auto found = std::ranges::find(version_names, *version & ~hidden, &std::pair<uint16_t, std::string_view>::first);
  if (found == version_names.end()) return name;
  return name.append(*version & hidden ? "@" : "@@").append(found->second);
}

class Search {
 public:
  Search(const elf::Image& image, std::span<const NamePattern> patterns, const Options& options)
      : image_(image),
        contents_{image.bytes(), {image.segments().begin(), image.segments().end()}},
        dynamic_(contents_),
        patterns_(patterns),
        options_(options) {
    for (uint32_t i = 0; i < patterns.size(); i++)
      if (is_of_image(patterns[i])) (is_glob(patterns[i].symbol) ? globs_ : exact_).push_back(i);
  }

  std::vector<NamedFunction> run() {
    if (globs_.empty() && exact_.empty()) return {};
    look_in_dynamic();
    if (!look_in_sections(contents_.file, elf::read_sections(contents_.file))) look_in_debug_files();
    // The name with a version says more than the same without one.
    std::ranges::sort(found_, [](const NamedFunction& a, const NamedFunction& b) {
      auto key = [](const NamedFunction& f) { return std::tuple(f.begin, f.pattern, Name(f.symbol).version.empty()); };
      return key(a) < key(b);
    });
    auto same = std::ranges::unique(found_, {}, [](const NamedFunction& f) { return std::tuple(f.begin, f.pattern); });
    found_.erase(same.begin(), same.end());
    return std::move(found_);
  }

 private:
  bool is_of_image(const NamePattern& p) const {
    return p.image.empty() || p.image == image_.path() || p.image == base_name(image_.path()) || p.image == dynamic_.soname;
  }

  // ---- Symbols ----

  void look_at(const Elf64_Sym& symbol, const std::string& text) {
    Name name(text);
    auto try_one = [&](uint32_t pattern, bool is_meant) {
      const NamePattern& p = patterns_[pattern];
      if (is_meant && (p.version.empty() || p.version == name.version)) add(symbol, pattern, text);
    };
    for (uint32_t i : exact_) try_one(i, patterns_[i].symbol == name.symbol);
    for (uint32_t i : globs_) try_one(i, matches(patterns_[i].symbol, name.symbol));
  }

  static bool is_function(const Elf64_Sym& s) {
    int type = ELF64_ST_TYPE(s.st_info);  // (assembly often leaves it out)
    return (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE) && s.st_shndx != SHN_UNDEF && s.st_value != 0;
  }

  void add(const Elf64_Sym& symbol, uint32_t pattern, const std::string& text) {
    Vaddr begin{symbol.st_value};
    if (!contents_.code_at(begin)) return;
    if (ELF64_ST_TYPE(symbol.st_info) != STT_GNU_IFUNC) found_.push_back({begin, pattern, text});
    else
      for (Vaddr variant : variants_of(begin)) found_.push_back({variant, pattern, text});
  }

  void look_in_dynamic() {
    bool has_hash = !dynamic_.hash.empty();
    if (has_hash)
      for (uint32_t i : exact_) look_up(patterns_[i].symbol);
    if (has_hash && globs_.empty()) return;
    for (uint64_t i = 0; auto s = load<Elf64_Sym>(dynamic_.symbols, i * sizeof(Elf64_Sym)); i++)
      if (is_function(*s)) look_at(*s, dynamic_.name_of(i, *s));
  }

  // Header: buckets, first symbol hashed, words of the filter, a shift; then filter (8 each), buckets (4), chains (4), whose
  // ends are odd.
  void look_up(std::string_view symbol) {
    const Bytes table = dynamic_.hash;
    auto buckets = load<uint32_t>(table, 0), first = load<uint32_t>(table, 4), words = load<uint32_t>(table, 8),
         shift = load<uint32_t>(table, 12);
    if (!buckets || !*buckets || !first || !words || !*words || !shift) return;
    uint32_t hash = gnu_hash(symbol);
    auto filter = load<uint64_t>(table, 16 + uint64_t{hash / 64 % *words} * 8);
    if (!filter || !(*filter >> hash % 64 & 1) || !(*filter >> (hash >> (*shift & 31)) % 64 & 1)) return;
    uint64_t buckets_at = 16 + uint64_t{*words} * 8, chains_at = buckets_at + uint64_t{*buckets} * 4;
    uint64_t index = load<uint32_t>(table, buckets_at + uint64_t{hash % *buckets} * 4).value_or(0);
    if (index < *first) return;
    for (;; index++) {
      auto link = load<uint32_t>(table, chains_at + (index - *first) * 4);
      if (!link) return;
      auto s = load<Elf64_Sym>(dynamic_.symbols, index * sizeof(Elf64_Sym));
      bool is_same = (*link | 1) == (hash | 1) && s && string_at(dynamic_.strings, s->st_name) == symbol;
      if (is_same && is_function(*s)) look_at(*s, dynamic_.name_of(index, *s));
      if (*link & 1) return;
    }
  }

  // Of .symtab. False: there is none.
  bool look_in_sections(Bytes file, std::span<const elf::Section> sections) {
    auto table = std::ranges::find_if(sections, [](const elf::Section& s) { return s.header.sh_type == SHT_SYMTAB; });
    if (table == sections.end() || table->header.sh_link >= sections.size()) return false;
    const Elf64_Shdr& names = sections[table->header.sh_link].header;
    Bytes strings = elf::slice(file, names.sh_offset, names.sh_size);
    Bytes symbols = elf::slice(file, table->header.sh_offset, table->header.sh_size);
    std::vector<uint64_t> wanted = places_of_names(strings);
    if (wanted.empty() && globs_.empty()) return true;
    for (uint64_t at = 0; auto s = load<Elf64_Sym>(symbols, at); at += sizeof *s) {
      if (globs_.empty() && !std::ranges::binary_search(wanted, s->st_name)) continue;
      if (is_function(*s)) look_at(*s, std::string(string_at(strings, s->st_name)));
    }
    return true;
  }

  // Where the names that are looked for stand among the strings, as the ends of others too.
  std::vector<uint64_t> places_of_names(Bytes strings) const {
    std::vector<uint64_t> places;
    for (uint32_t i : exact_) {
      const std::string& name = patterns_[i].symbol;
      auto is_end = [&](uint64_t at) {
        return at >= strings.size() || strings[at] == std::byte{0} || strings[at] == std::byte{'@'};
      };
      for (uint64_t at = 0; at < strings.size() && !name.empty(); at++) {
        auto* next = static_cast<const std::byte*>(memmem(&strings[at], strings.size() - at, name.data(), name.size()));
        if (!next) break;
        at = static_cast<uint64_t>(next - strings.data());
        if (is_end(at + name.size())) places.push_back(at);
      }
    }
    std::ranges::sort(places);
    return places;
  }

  // (A file that has been replaced meanwhile is not asked.)
  void look_in_debug_files() {
    Options options = options_;
    options.download_limit = {};  // the program waits
    auto image = open_object(image_.path());
    if (!image || (*image)->build_id != image_.build_id() || (*image)->contents.file.size() != contents_.file.size())
      return;
    auto look_in = [&](const std::unique_ptr<Object>& file) {
      return file && look_in_sections(file->contents.file, file->sections);
    };
    if (!look_in(find_debug_file(**image, options))) look_in(mini_debug_file(**image));
  }

  // ---- IFUNCs ----

  // What the code of a resolver names: by an address (lea, or a number where addresses are fixed), or by a word that the loader makes an address.
  std::vector<Vaddr> variants_of(Vaddr resolver) {
    std::optional<VRange> range = image_.function_bounds(resolver);
    if (!range) return {};
    auto header = load<Elf64_Ehdr>(contents_.file, 0);
    bool is_fixed = header && header->e_type == ET_EXEC;
    std::vector<Vaddr> variants;
    auto take = [&](Vaddr v) {
      if (contents_.code_at(v) && !range->contains(v)) variants.push_back(v);
    };
    Bytes code = elf::slice(contents_.at(resolver), 0, static_cast<uint64_t>(range->end - resolver));
    for (uint64_t at = 0; at < code.size();) {
      x86::Insn insn = x86::decode(code.subspan(at), {resolver.value + at});
      const x86::Shape& s = *insn.shape;
      if (s.kind == x86::Kind::Plain && s.rip_relative) {
        bool is_wide = (code[at] & std::byte{0xf8}) == std::byte{0x48};
        if (!s.reads_memory && !s.writes_memory) take({insn.target.value});
        else if (s.reads_memory && is_wide)
          if (auto word = word_at({insn.target.value})) take(*word);
      } else if (s.kind == x86::Kind::Plain && is_fixed && s.imm_size == 4) {
        if (auto number = load<uint32_t>(code, at + s.imm_offset)) take({*number});
      }
      at += std::max<uint64_t>(s.length, 1);
    }
    std::ranges::sort(variants);
    auto same = std::ranges::unique(variants);
    variants.erase(same.begin(), same.end());
    return variants;
  }

  // Of data, when the loader has relocated it; none where it is no address of this image.
  std::optional<Vaddr> word_at(Vaddr v) const {
    for (Bytes table : dynamic_.relocations)
      for (uint64_t at = 0; auto r = load<Elf64_Rela>(table, at); at += sizeof *r) {
        if (r->r_offset != v.value) continue;
        if (ELF64_R_TYPE(r->r_info) == R_X86_64_RELATIVE) return Vaddr{static_cast<uint64_t>(r->r_addend)};
        auto s = load<Elf64_Sym>(dynamic_.symbols, ELF64_R_SYM(r->r_info) * sizeof(Elf64_Sym));
        bool is_own = s && is_function(*s) && ELF64_ST_TYPE(s->st_info) != STT_GNU_IFUNC;
        return is_own ? std::optional(Vaddr{s->st_value + static_cast<uint64_t>(r->r_addend)}) : std::nullopt;
      }
    auto word = load<uint64_t>(contents_.at(v), 0);
    return word ? std::optional(Vaddr{*word}) : std::nullopt;
  }

  const elf::Image& image_;
  const elf::Contents contents_;
  const Dynamic dynamic_;
  std::span<const NamePattern> patterns_;
  const Options& options_;
  std::vector<uint32_t> exact_, globs_;  // patterns that this image may have
  std::vector<NamedFunction> found_;
};

}  // namespace

std::vector<NamedFunction> find_named(const elf::Image& image, std::span<const NamePattern> patterns,
                                      const Options& options) {
  return Search(image, patterns, options).run();
}

}  // namespace weir::symbols
