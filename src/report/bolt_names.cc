// As LLVM 19 does it (bolt/lib/Rewrite/RewriteInstance.cpp, discoverFileObjects): the symbols in memory are taken by their addresses,
// functions first, else in the order of the table; and of each name the local ones are counted, whether or not they are functions.
// (Where a FILE symbol stands before it, a function has a second name, `name/FILE/1`. The first is there always.)
#include "report/bolt_names.h"

#include <algorithm>
#include <tuple>

#include "elf/contents.h"

namespace weir::report {
namespace {

std::string string_at(elf::Bytes strings, uint64_t offset) {
  elf::Bytes rest = elf::slice(strings, offset);
  return {reinterpret_cast<const char*>(rest.data()),
          static_cast<size_t>(std::ranges::find(rest, std::byte{0}) - rest.begin())};
}

bool is_in_memory(const Elf64_Sym& s, std::span<const elf::Section> sections) {
  if (ELF64_ST_TYPE(s.st_info) == STT_FILE || s.st_value == 0) return false;
  if (s.st_shndx == SHN_ABS) return true;
  return s.st_shndx != SHN_UNDEF && s.st_shndx < sections.size() && sections[s.st_shndx].header.sh_flags & SHF_ALLOC;
}

auto bolt_order(const Elf64_Sym& s) {
  int type = ELF64_ST_TYPE(s.st_info);
  return std::tuple(s.st_value, type == STT_FUNC ? 0 : type == STT_SECTION ? 2 : 1);
}

}  // namespace

BoltNames bolt_names(const elf::Image& image) {
  std::vector<elf::Section> sections = elf::read_sections(image.bytes());
  auto table = std::ranges::find(sections, uint32_t{SHT_SYMTAB}, [](const elf::Section& s) { return s.header.sh_type; });
  if (table == sections.end() || table->header.sh_link >= sections.size()) return {};
  auto bytes_of = [&](const elf::Section& s) { return elf::slice(image.bytes(), s.header.sh_offset, s.header.sh_size); };
  elf::Bytes entries = bytes_of(*table), strings = bytes_of(sections[table->header.sh_link]);
  std::vector<Elf64_Sym> symbols;
  for (uint64_t at = 0; auto s = elf::load<Elf64_Sym>(entries, at); at += sizeof *s)
    if (is_in_memory(*s, sections)) symbols.push_back(*s);
  std::ranges::stable_sort(symbols, {}, bolt_order);
  BoltNames names;
  std::map<std::string, uint64_t> last;
  for (const Elf64_Sym& s : symbols) {
    std::string name = string_at(strings, s.st_name);
    if (ELF64_ST_BIND(s.st_info) != STB_LOCAL || name.empty()) continue;
    std::string prefix = name.starts_with(".L") ? "PG" : "";  // (else LLVM would not keep it)
    names[{s.st_value, name}] = fmt::format("{}{}/{}", prefix, name, ++last[name]);
  }
  return names;
}

}  // namespace weir::report
