#include "symbols/object.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <sys/stat.h>

namespace weir::symbols {

namespace {

Result<std::unique_ptr<Object>> read_headers(std::unique_ptr<Object> object) {
  if (!object->elf || elf_kind(object->elf.get()) != ELF_K_ELF) return fail("{}: not an ELF file", object->path);
  size_t size = 0;
  auto data = reinterpret_cast<const std::byte*>(elf_rawfile(object->elf.get(), &size));
  if (!data) return fail("{}: {}", object->path, elf_errmsg(-1));
  object->contents.file = {data, size};
  TRY(object->contents.segments, elf::read_segments(object->contents.file, object->path));
  object->sections = elf::read_sections(object->contents.file);
  const void* id = nullptr;
  ssize_t id_size = dwelf_elf_gnu_build_id(object->elf.get(), &id);
  for (ssize_t i = 0; i < id_size; ++i) object->build_id += fmt::format("{:02x}", static_cast<const unsigned char*>(id)[i]);
  return object;
}

}  // namespace

const elf::Section* Object::section(std::string_view name) const {
  auto found = std::ranges::find(sections, name, &elf::Section::name);
  return found == sections.end() ? nullptr : &*found;
}

elf::Bytes Object::bytes_of(const elf::Section& section) const {
  if (section.header.sh_type == SHT_NOBITS) return {};
  return elf::slice(contents.file, section.header.sh_offset, section.header.sh_size);
}

std::vector<elf::VRange> Object::code() const {
  std::vector<elf::VRange> ranges;
  for (const elf::Segment& s : contents.segments)
    if (s.type == PT_LOAD && s.flags & PF_X) ranges.push_back({s.vaddr, elf::end_of(s.vaddr, s.file_size)});
  std::ranges::sort(ranges);
  std::vector<elf::VRange> apart;
  for (elf::VRange range : ranges) {
    if (!apart.empty()) range.begin = std::max(range.begin, apart.back().end);
    if (range.begin < range.end) apart.push_back(range);
  }
  return apart;
}

std::string_view string_at(elf::Bytes strings, uint64_t offset) {
  elf::Bytes rest = elf::slice(strings, offset);
  auto text = reinterpret_cast<const char*>(rest.data());
  return {text, rest.empty() ? 0 : strnlen(text, rest.size())};
}

Result<std::unique_ptr<Object>> open_object(const std::string& path) {
  // O_NONBLOCK: a FIFO must not stop us here.
  Fd fd = open_to_read(path);
  if (!fd) return fail_errno("{}", path);
  return open_object(std::move(fd), path);
}

Result<std::unique_ptr<Object>> open_object(Fd fd, const std::string& path, Packing packing) {
  struct stat status;
  if (fstat(fd.get(), &status) != 0) return fail_errno("{}", path);
  if (!S_ISREG(status.st_mode)) return fail("{}: not a file", path);
  elf_version(EV_CURRENT);
  auto object = std::make_unique<Object>();
  object->path = path;
  object->fd = std::move(fd);
  object->elf.reset(packing == Packing::Compressed ? dwelf_elf_begin(object->fd.get())
                                                   : elf_begin(object->fd.get(), ELF_C_READ_MMAP, nullptr));
  return read_headers(std::move(object));
}

Result<std::unique_ptr<Object>> object_from_memory(std::vector<std::byte> bytes, const std::string& path) {
  elf_version(EV_CURRENT);
  auto object = std::make_unique<Object>();
  object->path = path;
  object->owned = std::move(bytes);
  object->elf.reset(elf_memory(reinterpret_cast<char*>(object->owned.data()), object->owned.size()));
  return read_headers(std::move(object));
}

}  // namespace weir::symbols
