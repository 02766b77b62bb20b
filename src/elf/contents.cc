// Headers of an ELF file, and reading by address; see the System V ABI, "Object Files", and its x86-64 supplement.
#include "elf/contents.h"

namespace weir::elf {

// The bits of a LEB128 number that fit into 64; what is above them is dropped, as binutils does.
uint64_t Cursor::leb(unsigned& bits, bool& negative) {
  uint64_t value = 0;
  bits = 0;
  uint8_t byte;
  do {
    byte = get<uint8_t>();
    if (bits < 64) value |= static_cast<uint64_t>(byte & 0x7f) << bits;
    bits += 7;
  } while (byte & 0x80);
  negative = byte & 0x40;
  return value;
}

uint64_t Cursor::uleb() {
  unsigned bits;
  bool negative;
  return leb(bits, negative);
}

int64_t Cursor::sleb() {
  unsigned bits;
  bool negative;
  uint64_t value = leb(bits, negative);
  if (negative && bits < 64) value |= ~uint64_t{0} << bits;
  return static_cast<int64_t>(value);
}

Cursor Cursor::take(uint64_t size) {
  if (size > left()) fail();
  Cursor taken(ok_ ? bytes_.subspan(position_, size) : Bytes(), address());
  taken.ok_ = ok_;
  if (ok_) position_ += size;
  return taken;
}

Bytes Contents::at(Vaddr v) const {
  for (const Segment& s : segments)
    if (s.type == PT_LOAD && v >= s.vaddr && v.value - s.vaddr.value < s.file_size)
      return slice(file, s.offset, s.file_size).subspan(v.value - s.vaddr.value);
  return {};
}

std::optional<VRange> Contents::code_at(Vaddr v) const {
  for (const Segment& s : segments) {
    VRange range{s.vaddr, end_of(s.vaddr, s.file_size)};
    if (s.type == PT_LOAD && s.flags & PF_X && range.contains(v)) return range;
  }
  return std::nullopt;
}

const Segment* Contents::find(uint32_t type) const {
  auto found = std::ranges::find(segments, type, &Segment::type);
  return found == segments.end() ? nullptr : &*found;
}

Result<std::vector<Segment>> read_segments(Bytes file, std::string_view path) {
  std::optional<Elf64_Ehdr> header = load<Elf64_Ehdr>(file, 0);
  if (file.size() < EI_NIDENT || std::memcmp(file.data(), ELFMAG, SELFMAG) != 0) return fail("{}: not an ELF file", path);
  if (std::to_integer<int>(file[EI_CLASS]) != ELFCLASS64)
    return fail("{}: not a 64-bit ELF file (class {})", path, std::to_integer<int>(file[EI_CLASS]));
  if (!header) return fail("{}: an ELF file cut off in its header", path);
  if (header->e_ident[EI_DATA] != ELFDATA2LSB) return fail("{}: a big-endian ELF file, not one for x86-64", path);
  if (header->e_machine != EM_X86_64)
    return fail("{}: an ELF file for another machine (number {}), not for x86-64", path, header->e_machine);
  if (header->e_phnum != 0 && header->e_phentsize != sizeof(Elf64_Phdr))
    return fail("{}: program headers of {} bytes, not {}", path, header->e_phentsize, sizeof(Elf64_Phdr));

  Bytes table = slice(file, header->e_phoff, header->e_phnum * sizeof(Elf64_Phdr));
  if (table.size() != header->e_phnum * sizeof(Elf64_Phdr)) return fail("{}: program headers outside the file", path);
  std::vector<Segment> segments;
  segments.reserve(header->e_phnum);
  for (size_t i = 0; i < header->e_phnum; ++i) {
    Elf64_Phdr p = *load<Elf64_Phdr>(table, i * sizeof(Elf64_Phdr));
    uint64_t in_file = slice(file, p.p_offset, p.p_filesz).size();
    if (std::max(p.p_memsz, in_file) > UINT64_MAX - p.p_vaddr) continue;  // no loader takes it
    segments.push_back({p.p_type, p.p_flags, p.p_offset, in_file, p.p_memsz, {p.p_vaddr}, p.p_align});
  }
  return segments;
}

std::vector<Section> read_sections(Bytes file) {
  std::optional<Elf64_Ehdr> header = load<Elf64_Ehdr>(file, 0);
  if (!header || header->e_shoff == 0 || header->e_shentsize != sizeof(Elf64_Shdr)) return {};
  // Numbers too large for the header are in section 0.
  std::optional<Elf64_Shdr> first = load<Elf64_Shdr>(file, header->e_shoff);
  if (!first) return {};
  uint64_t count = header->e_shnum != 0 ? header->e_shnum : first->sh_size;
  uint64_t names_index = header->e_shstrndx != SHN_XINDEX ? header->e_shstrndx : first->sh_link;

  Bytes table = slice(file, header->e_shoff);
  if (count > table.size() / sizeof(Elf64_Shdr)) return {};
  std::vector<Section> sections(count);
  for (size_t i = 0; i < count; ++i) sections[i].header = *load<Elf64_Shdr>(table, i * sizeof(Elf64_Shdr));
  if (names_index >= count) return sections;

  const Elf64_Shdr& names_header = sections[names_index].header;
  Bytes names = slice(file, names_header.sh_offset, names_header.sh_size);
  for (Section& s : sections) {
    Bytes name = slice(names, s.header.sh_name, 32);
    s.name = {reinterpret_cast<const char*>(name.data()), name.size()};
    s.name = s.name.substr(0, s.name.find('\0'));
  }
  return sections;
}

}  // namespace weir::elf
