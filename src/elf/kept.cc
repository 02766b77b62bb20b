#include "elf/kept.h"

#include <sys/stat.h>

#include <cstring>
#include <ctime>
#include <filesystem>
#include <mutex>

#include "base/cache.h"

namespace weir::elf {

namespace {

constexpr uint64_t max_size = uint64_t{1} << 30;
constexpr int64_t month = 31 * 24 * 3600;

struct FileHead {
  uint64_t word;
  int64_t image_size, image_seconds, image_nanoseconds;
  uint64_t checksum;  // of this head, up to here, and of all behind it
};

FileHead own_head(const Image& image, const Kind& kind) {
  timespec modified = image.modified();
  return {kind.word, static_cast<int64_t>(image.bytes().size()), modified.tv_sec, modified.tv_nsec, 0};
}

uint64_t checksum(const FileHead& head, std::span<const std::byte> bytes) {
  return checksum_of(bytes, checksum_of(std::as_bytes(std::span(&head, 1)).first(offsetof(FileHead, checksum))));
}

// The directory is made and looked at once, not for each of a thousand files.
std::string directory_now() {
  static std::mutex mutex;
  static std::string known, of;
  auto word = [](const char* name) { return std::string(getenv(name) ? getenv(name) : ""); };
  std::string now = word("XDG_CACHE_HOME") + '\n' + word("HOME");
  std::lock_guard lock(mutex);
  if (now != of || known.empty()) of = now, known = cache_directory();
  return known;
}

std::string file_name(const Image& image, const Kind& kind) {
  std::string directory = directory_now(), id = image.build_id();
  return directory.empty() || id.empty() ? "" : fmt::format("{}/{}-{}", directory, kind.name, id);
}

std::mutex writing;

// All that was kept and not used for a month, and what is left of runs that were killed.
void remove_old(const std::filesystem::path& directory) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(directory, none)) {
    struct stat st;
    std::string name = entry.path().filename();
    if ((!name.starts_with("unwind-") && !name.starts_with("sites-")) || lstat(entry.path().c_str(), &st) != 0) continue;
    if (st.st_mtim.tv_sec < time(nullptr) - month) unlink(entry.path().c_str());
  }
}

}  // namespace

std::optional<Kept> read_kept(const Image& image, const Kind& kind) {
  std::string path = file_name(image, kind);
  if (path.empty()) return {};
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat st;
  if (!fd || fstat(fd.get(), &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022)) return {};
  auto size = static_cast<uint64_t>(st.st_size);
  if (size < sizeof(FileHead) || size > max_size) return {};
  constexpr uint64_t small = 64 << 10;  // to map it would take longer than to read it
  Kept kept;
  std::span<const std::byte> bytes;
  if (size <= small) {
    kept.own = std::make_unique_for_overwrite<std::byte[]>(size);
    bytes = {kept.own.get(), size};
    if (pread(fd.get(), kept.own.get(), size, 0) != static_cast<ssize_t>(size)) return {};
  } else {
    void* p = mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd.get(), 0);
    if (p == MAP_FAILED) return {};
    kept.file = Mapping(p, size);
    bytes = kept.file.bytes();
  }
  kept.bytes = bytes.subspan(sizeof(FileHead));
  FileHead head, own = own_head(image, kind);
  memcpy(&head, bytes.data(), sizeof head);
  if (memcmp(&head, &own, offsetof(FileHead, checksum)) != 0 || head.checksum != checksum(head, kept.bytes)) return {};
  // Its date is when it was last used.
  if (st.st_mtim.tv_sec < time(nullptr) - month / 4) futimens(fd.get(), nullptr);
  return kept;
}

void keep(const Image& image, const Kind& kind, std::span<const std::byte> bytes) {
  std::string path = file_name(image, kind);
  FileHead head = own_head(image, kind);
  head.checksum = checksum(head, bytes);
  if (path.empty() || bytes.size() > max_size - sizeof head) return;
  static std::once_flag once;
  std::call_once(once, [&] { remove_old(std::filesystem::path(path).parent_path()); });
  std::lock_guard lock(writing);
  std::string temporary = fmt::format("{}.{}", path, getpid());
  Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return;
  bool written = write(fd.get(), &head, sizeof head) == sizeof head &&
                 write(fd.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  if (!written || rename(temporary.c_str(), path.c_str()) != 0) unlink(temporary.c_str());
}

void keep_no_more() { writing.lock(); }

}  // namespace weir::elf
