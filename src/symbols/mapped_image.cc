#include "symbols/mapped_image.h"

#include <elf.h>
#include <sys/stat.h>

#include <map>
#include <tuple>

namespace weir::symbols {

Result<std::shared_ptr<elf::Image>> open_image(Fd file, const std::string& path) {
  using Key = std::tuple<dev_t, ino_t, time_t, long>;  // the last two: when it was changed
  static std::map<Key, std::shared_ptr<elf::Image>> opened;
  struct stat st{};
  if (!file || fstat(file.get(), &st)) return fail("{}: cannot be opened", path);
  Key key{st.st_dev, st.st_ino, st.st_mtim.tv_sec, st.st_mtim.tv_nsec};
  if (auto known = opened.find(key); known != opened.end()) return known->second;
  TRY(auto image, elf::Image::open(std::move(file), path));
  // More than a large program has (some 400). Those that nobody has any more go.
  constexpr size_t enough = 4096;
  if (opened.size() >= enough) std::erase_if(opened, [](const auto& o) { return o.second.use_count() == 1; });
  return opened[key] = std::move(image);
}

Result<std::shared_ptr<elf::Image>> open_image(pid_t pid, const process::Region& region) {
  if (region.path == "[vdso]") {
    std::vector<std::byte> bytes(region.range.size());
    process::read(pid, region.range.begin.value, bytes);
    TRY(auto image, elf::Image::from_memory(std::move(bytes), region.path));
    return std::shared_ptr<elf::Image>(std::move(image));
  }
  if (region.inode == 0) return fail("anonymous");
  return open_image(open_file(pid, region), region.path);
}

Fd open_file(pid_t pid, const process::Region& region) {
  auto open_if_same = [&](const std::string& path) {
    struct stat st{};
    Fd fd = open_to_read(path);
    return fd && fstat(fd.get(), &st) == 0 && st.st_ino == region.inode ? std::move(fd) : Fd();
  };
  Fd fd = open_if_same(region.path);
  if (!fd) fd = open_if_same(fmt::format("/proc/{}/root{}", pid, region.path));
  if (!fd)
    fd = open_if_same(fmt::format("/proc/{}/map_files/{:x}-{:x}", pid, region.range.begin.value, region.range.end.value));
  return fd;
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
