#include "symbols/debug_frame.h"

#include <gelf.h>

#include "base/truncation.h"
#include "symbols/debug_file.h"
#include "symbols/object.h"

namespace weir::symbols {

namespace {

constexpr uint64_t most = 512 << 20;

std::vector<std::byte> section_of(const Object& object) {
  size_t names = 0;
  if (elf_getshdrstrndx(object.elf.get(), &names) != 0) return {};
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(object.elf.get(), section));) {
    Elf64_Shdr* header = elf64_getshdr(section);
    const char* name = header ? elf_strptr(object.elf.get(), names, header->sh_name) : nullptr;
    bool is_old = name && strcmp(name, ".zdebug_frame") == 0;
    if (!name || (!is_old && strcmp(name, ".debug_frame") != 0) || header->sh_type == SHT_NOBITS) continue;
    GElf_Chdr packed;
    if (header->sh_flags & SHF_COMPRESSED && (!gelf_getchdr(section, &packed) || packed.ch_size > most)) return {};
    if (header->sh_flags & SHF_COMPRESSED && elf_compress(section, 0, 0) < 0) return {};
    if (is_old && elf_compress_gnu(section, 0, 0) < 0) return {};
    Elf_Data* data = elf_getdata(section, nullptr);
    if (!data || !data->d_buf || data->d_size > most) return {};
    auto bytes = static_cast<const std::byte*>(data->d_buf);
    return {bytes, bytes + data->d_size};
  }
  return {};
}

}  // namespace

std::vector<std::byte> debug_frame_of(const std::string& path, const Options& options) {
  TruncationGuard guard;
  auto image = open_object(path);
  if (!image || (!options.build_id.empty() && (*image)->build_id != options.build_id)) return {};
  if (std::vector<std::byte> own = section_of(**image); !own.empty()) return own;
  std::unique_ptr<Object> debug = find_debug_file(**image, options);
  return debug ? section_of(*debug) : std::vector<std::byte>();
}

}  // namespace weir::symbols
