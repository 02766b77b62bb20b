// After the GDB manual, "Debugging Information in Separate Files".
#include "symbols/debug_file.h"

#include <elfutils/libdwelf.h>
#include <sys/mman.h>

#include <filesystem>

#include "base/zip.h"
#include "symbols/debuginfod.h"

namespace weir::symbols {

namespace {

namespace fs = std::filesystem;

constexpr size_t largest_mini_file = 64 << 20;  // compressed; those of distributions are below 1 MB

// The file at `path`, if it has this build-id.
std::unique_ptr<Object> open_with_id(const std::string& path, std::string_view build_id) {
  auto object = open_object(path);
  return object && (*object)->build_id == build_id ? std::move(*object) : nullptr;
}

std::string path_by_build_id(const std::string& root, const std::string& build_id) {
  return fmt::format("{}/.build-id/{}/{}.debug", root, build_id.substr(0, 2), build_id.substr(2));
}

uint32_t crc_of(const Object& object) { return crc32_of(object.contents.file); }

// A build-id in both decides; where one has none, the checksum of the whole file does.
bool is_linked(const Object& image, const Object& candidate, uint32_t crc) {
  if (!image.build_id.empty() && !candidate.build_id.empty()) return image.build_id == candidate.build_id;
  return crc_of(candidate) == crc;
}

std::unique_ptr<Object> find_by_link(const Object& image, const std::string& root) {
  GElf_Word crc = 0;
  const char* link = dwelf_elf_gnu_debuglink(image.elf.get(), &crc);
  if (!link || !*link || strchr(link, '/')) return nullptr;
  std::error_code error;
  fs::path directory = fs::canonical(image.path, error).parent_path();
  if (error) return nullptr;
  for (const fs::path& place : {directory, directory / ".debug", fs::path(root + directory.string())}) {
    auto object = open_object(place / link);
    if (object && is_linked(image, **object, crc)) return std::move(*object);
  }
  return nullptr;
}

std::unique_ptr<Object> download(const std::string& build_id, const std::string& path, const Options& options) {
  auto file = download_debug_file(build_id, fs::path(path).filename(), options.download_limit);
  if (!file) return nullptr;
  auto object = open_object(std::move(file->fd), file->path);
  return object ? std::move(*object) : nullptr;
}

}  // namespace

std::unique_ptr<Object> find_debug_file(const Object& image, const Options& options) {
  if (image.build_id.size() > 2)
    if (auto found = open_with_id(path_by_build_id(options.debug_root, image.build_id), image.build_id)) return found;
  if (auto found = find_by_link(image, options.debug_root)) return found;
  return download(image.build_id, image.path, options);
}

std::unique_ptr<Object> mini_debug_file(const Object& image) {
  const elf::Section* section = image.section(".gnu_debugdata");
  if (!section) return nullptr;
  elf::Bytes bytes = image.bytes_of(*section);
  if (bytes.size() > largest_mini_file) return nullptr;
  // elfutils decompresses what it opens, and it opens descriptors.
  Fd file(memfd_create("debugdata", MFD_CLOEXEC));
  if (!file || write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) return nullptr;
  auto object = open_object(std::move(file), image.path, Packing::Compressed);
  return object ? std::move(*object) : nullptr;
}

std::unique_ptr<Object> find_alternate_file(const Object& debug, Dwarf* dwarf, const Options& options) {
  const char* name = nullptr;
  const void* id = nullptr;
  ssize_t size = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &id);
  if (size <= 0 || dwarf_getalt(dwarf)) return nullptr;
  std::string build_id;
  for (ssize_t i = 0; i < size; ++i) build_id += fmt::format("{:02x}", static_cast<const unsigned char*>(id)[i]);
  if (build_id.size() > 2)
    if (auto found = open_with_id(path_by_build_id(options.debug_root, build_id), build_id)) return found;
  if (auto found = open_with_id(fs::path(debug.path).parent_path() / name, build_id)) return found;
  return download(build_id, debug.path, options);
}

}  // namespace weir::symbols
