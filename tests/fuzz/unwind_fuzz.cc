// Bytes as an ELF file with call frame information, and as a bare .eh_frame and .debug_frame: whatever they say, the table that is
// compiled is sound, every address has a rule, and nothing is read outside the bytes.
//
// Input: the file itself. And, as it will hardly ever be one: the bytes as call frame information of a file that is.
#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "unwind/table.h"

using namespace weir;

namespace {

void compile_and_ask(const elf::Image& image, std::span<const std::byte> debug_frame) {
  unwind::Statistics statistics;
  auto table = unwind::compile(image, debug_frame, &statistics);
  if (!table) {
    CHECK(table.error().what.starts_with("input: "));
    return;
  }
  CHECK(unwind::is_sound(*table));
  CHECK(statistics.covered + statistics.unsupported <= statistics.text);
  const auto& head = *reinterpret_cast<const rt::TableHead*>(table->data());
  for (uint64_t at = 0; at < head.text_size + 2; at += head.text_size / 500 + 1)
    rt::find_rule(head, head.text_begin + at - 1);
}

// A file with one executable segment of 64 KiB of addresses, and `frames` as its .eh_frame.
std::vector<std::byte> file_with(const uint8_t* frames, size_t size) {
  constexpr char names[] = "\0.eh_frame\0.shstrtab";
  constexpr uint64_t text_size = 1 << 16, text_at = 0x1000;
  uint64_t frames_at = text_at + text_size, names_at = frames_at + size,
           sections_at = (names_at + sizeof names + 7) & ~7ull;
  std::vector<std::byte> file(sections_at + 3 * sizeof(Elf64_Shdr));
  auto put = [&](uint64_t at, const void* data, size_t n) { memcpy(file.data() + at, data, n); };
  Elf64_Ehdr header{};
  memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64, header.e_ident[EI_DATA] = ELFDATA2LSB, header.e_machine = EM_X86_64;
  header.e_phoff = sizeof header, header.e_phentsize = sizeof(Elf64_Phdr), header.e_phnum = 2;
  header.e_shoff = sections_at, header.e_shentsize = sizeof(Elf64_Shdr), header.e_shnum = 3, header.e_shstrndx = 2;
  Elf64_Phdr segments[2] = {{PT_LOAD, PF_R | PF_X, text_at, text_at, text_at, text_size, text_size, 4096},
                            {PT_LOAD, PF_R, frames_at, frames_at, frames_at, size, size, 4096}};
  Elf64_Shdr sections[3] = {};
  sections[1] = {1, SHT_PROGBITS, SHF_ALLOC, frames_at, frames_at, size, 0, 0, 8, 0};
  sections[2] = {11, SHT_STRTAB, 0, 0, names_at, sizeof names, 0, 0, 1, 0};
  put(0, &header, sizeof header), put(sizeof header, segments, sizeof segments), put(frames_at, frames, size);
  put(names_at, names, sizeof names), put(sections_at, sections, sizeof sections);
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto bytes = reinterpret_cast<const std::byte*>(data);
  if (auto image = elf::Image::from_memory({bytes, bytes + size}, "input")) compile_and_ask(**image, {});
  auto made = elf::Image::from_memory(file_with(data, size), "input");
  CHECK(made);
  compile_and_ask(**made, {bytes, size});
  return 0;
}
