#include "symbols/mapped_image.h"

#include <elf.h>
#include <sys/stat.h>

namespace weir::symbols {

Result<std::shared_ptr<elf::Image>> open_image(Fd file, const std::string& path) {
  struct Key {
    dev_t dev;
    ino_t inode;
    timespec changed;
    bool operator==(const Key& o) const {
      return dev == o.dev && inode == o.inode && changed.tv_sec == o.changed.tv_sec && changed.tv_nsec == o.changed.tv_nsec;
    }
  };
  static std::vector<std::pair<Key, std::shared_ptr<elf::Image>>> opened;
  struct stat st{};
  if (!file || fstat(file.get(), &st)) return fail("{}: cannot be opened", path);
  Key key{st.st_dev, st.st_ino, st.st_mtim};
  for (auto& [k, image] : opened)
    if (k == key) return image;
  constexpr size_t enough = 256;
  if (opened.size() >= enough) opened.erase(opened.begin());
  TRY(auto image, elf::Image::open(std::move(file), path));
  opened.emplace_back(key, std::move(image));
  return opened.back().second;
}

Result<std::shared_ptr<elf::Image>> open_image(pid_t pid, const process::Region& region) {
  if (region.path == "[vdso]") {
    std::vector<std::byte> bytes(region.range.size());
    process::read(pid, region.range.begin.value, bytes);
    TRY(auto image, elf::Image::from_memory(std::move(bytes), region.path));
    return std::shared_ptr<elf::Image>(std::move(image));
  }
  if (region.inode == 0) return fail("anonymous");
  auto open_file = [&](const std::string& path) {
    struct stat st{};
    Fd fd = open_to_read(path);
    return fd && fstat(fd.get(), &st) == 0 && st.st_ino == region.inode ? std::move(fd) : Fd();
  };
  Fd fd = open_file(region.path);
  if (!fd) fd = open_file(fmt::format("/proc/{}/root{}", pid, region.path));
  if (!fd)
    fd = open_file(fmt::format("/proc/{}/map_files/{:x}-{:x}", pid, region.range.begin.value, region.range.end.value));
  return open_image(std::move(fd), region.path);
}

uint64_t bias_of(const process::Region& r, const elf::Image& image) {
  // By the executable segment that the mapping's first page holds a part of: segments may share a page of the file.
  uint64_t bias = 0;
  for (const elf::Segment& x : image.segments())
    if (x.type == PT_LOAD && (x.flags & PF_X) && r.offset >= (x.offset & ~uint64_t{4095}) &&
        r.offset < x.offset + x.file_size)
      bias = r.range.begin.value - (r.offset - x.offset + x.vaddr.value);
  return bias;
}

}  // namespace weir::symbols
