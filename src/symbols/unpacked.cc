// The copy has the build-id of the file in its name, and a checksum of what tells this file from another with the same one. It is
// trusted as much as the cache directory, which is ours alone, and read as carefully as any file.
#include "symbols/unpacked.h"

#include <fcntl.h>
#include <gelf.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "base/cache.h"

namespace weir::symbols {

namespace {

constexpr uint64_t most = 128 << 20;  // plain bytes; what is larger is unpacked each time

bool is_packed(const elf::Section& s) { return s.header.sh_flags & SHF_COMPRESSED && s.header.sh_type != SHT_NOBITS; }

// Where variables are, and macros: half of what a debug file of C has, beside .debug_info.
bool is_needless(std::string_view name) {
  return name == ".debug_loclists" || name == ".debug_loc" || name == ".debug_macro" || name == ".debug_frame";
}

// Of all packed sections together; more than `most` where one is not as it should be.
uint64_t plain_size(const Object& debug) {
  uint64_t size = 0;
  for (const elf::Section& s : debug.sections) {
    if (!is_packed(s)) continue;
    auto head = elf::load<Elf64_Chdr>(debug.bytes_of(s), 0);
    size += head ? std::min(head->ch_size, most + 1) : most + 1;
  }
  return size;
}

std::string path_of_copy(const Object& debug) {
  struct stat st;
  std::string directory = cache_directory();
  if (directory.empty() || debug.build_id.empty() || fstat(debug.fd.get(), &st) != 0) return {};
  uint64_t file[] = {static_cast<uint64_t>(st.st_size), static_cast<uint64_t>(st.st_mtim.tv_sec),
                     static_cast<uint64_t>(st.st_mtim.tv_nsec)};
  return fmt::format("{}/debug-{}-{:x}", directory, debug.build_id, checksum_of(std::as_bytes(std::span(file))));
}

std::unique_ptr<Object> open_copy(const std::string& path, const Object& debug) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat st;
  if (!fd || fstat(fd.get(), &st) != 0 || st.st_uid != geteuid()) return nullptr;
  auto copy = open_object(std::move(fd), debug.path);
  bool is_it = copy && (*copy)->build_id == debug.build_id && !std::ranges::any_of((*copy)->sections, is_packed);
  return is_it ? std::move(*copy) : nullptr;
}

// libelf gives the sections new places when it writes the file.
bool unpack(int fd) {
  ElfHandle elf(elf_begin(fd, ELF_C_RDWR, nullptr));
  size_t names = 0;
  if (!elf || elf_getshdrstrndx(elf.get(), &names) != 0) return false;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf.get(), section));) {
    Elf64_Shdr* header = elf64_getshdr(section);
    const char* name = header ? elf_strptr(elf.get(), names, header->sh_name) : nullptr;
    if (!name) return false;
    if (is_needless(name)) {
      header->sh_type = SHT_NOBITS, header->sh_flags &= ~uint64_t{SHF_COMPRESSED};
      elf_flagshdr(section, ELF_C_SET, ELF_F_DIRTY);
    } else if (header->sh_flags & SHF_COMPRESSED && elf_compress(section, 0, 0) < 0) {
      return false;
    }
  }
  return elf_update(elf.get(), ELF_C_WRITE) > 0 && fsync(fd) == 0;
}

// Copies that were not used for a month go, and what is left of runs that were killed.
void remove_old(const std::filesystem::path& directory) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(directory, none)) {
    constexpr int64_t month = 31 * 24 * 3600;
    struct stat st;
    if (!entry.path().filename().string().starts_with("debug-") || lstat(entry.path().c_str(), &st) != 0) continue;
    if (std::max(st.st_atim.tv_sec, st.st_mtim.tv_sec) < time(nullptr) - month) unlink(entry.path().c_str());
  }
}

void make_copy(const std::string& path, const Object& debug) {
  remove_old(std::filesystem::path(path).parent_path());
  std::string temporary = fmt::format("{}.{}", path, getpid());
  Fd fd(::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) return;
  elf::Bytes all = debug.contents.file;
  bool written = write(fd.get(), all.data(), all.size()) == static_cast<ssize_t>(all.size()) && unpack(fd.get());
  if (!written || rename(temporary.c_str(), path.c_str()) != 0) unlink(temporary.c_str());
}

}  // namespace

std::unique_ptr<Object> unpacked(std::unique_ptr<Object> debug) {
  if (!debug || !std::ranges::any_of(debug->sections, is_packed) || plain_size(*debug) > most) return debug;
  std::string path = path_of_copy(*debug);
  if (path.empty()) return debug;
  if (auto copy = open_copy(path, *debug)) return copy;
  make_copy(path, *debug);
  auto copy = open_copy(path, *debug);
  return copy ? std::move(copy) : std::move(debug);
}

}  // namespace weir::symbols
