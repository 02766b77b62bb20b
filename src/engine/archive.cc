#include "engine/archive.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>

namespace weir::engine {

namespace {

constexpr uint64_t magic = 0x3472696557637241;  // "ArcWeir4"
constexpr uint64_t max_size = uint64_t{4} << 30;
constexpr size_t part_count = 7;

// The arrays follow the head; then code and table, on pages of their own.
struct Head {
  uint64_t magic;
  int64_t writer_size, writer_seconds, writer_nanoseconds;  // of the weir that wrote it
  int64_t file_size, file_seconds, file_nanoseconds;
  uint64_t code_begin, code_end;  // of the file, in memory
  uint64_t counts[part_count];
  uint64_t code_size, not_supported, arena;
  int64_t written;    // the date that Weir gave the file, in seconds: anybody else who writes to it changes that
  uint64_t contents;  // checksum of arrays and code (a table page that was lost is empty: its addresses are asked for)
  char boot[40];      // when that was last found right: the machine may have gone down before the file was on disk
  uint64_t checksum;  // of the head, up to here
};

Head own_head(const ArchiveKey& key, AppRange code) {
  static const struct stat own = [] {
    struct stat st{};
    return stat("/proc/self/exe", &st) ? (struct stat){} : st;
  }();
  Head head{};
  if (!own.st_size) return head;
  head.magic = magic;
  head.writer_size = own.st_size, head.writer_seconds = own.st_mtim.tv_sec, head.writer_nanoseconds = own.st_mtim.tv_nsec;
  head.file_size = key.size;
  head.file_seconds = key.changed.tv_sec, head.file_nanoseconds = key.changed.tv_nsec;
  head.code_begin = code.begin.value, head.code_end = code.end.value;
  static const std::string boot = [] {
    std::string id;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
    return id;
  }();
  strncpy(head.boot, boot.c_str(), sizeof head.boot - 1);
  return head;
}

uint64_t checksum_of_head(const Head& head) {
  return checksum_of(std::as_bytes(std::span(&head, 1)).first(offsetof(Head, checksum)));
}

std::string file_name(const ArchiveKey& key, const std::string& tool, AppRange code) {
  static const std::string where = cache_directory();
  if (key.id.empty() || tool.empty() || where.empty()) return {};
  return fmt::format("{}/{}-{}-{:x}", where, key.id, tool, code.begin.value >> 12);
}

size_t up(size_t n, size_t to) { return (n + to - 1) / to * to; }

// The parts that are arrays, in the order of the file.
template <class F>
void for_each_array(ArchiveParts& p, F f) {
  f(p.units), f(p.functions), f(p.entries), f(p.blocks), f(p.marks), f(p.exits), f(p.table_pages);
}

// Numbers in the arrays lead to places inside the others: that is all that this process relies on.
bool is_sound(const ArchiveParts& p, AppRange code) {
  auto fits = [](uint64_t first, uint64_t count, uint64_t size) { return first <= size && count <= size - first; };
  for (const ArchivedUnit& u : p.units)
    if (!fits(u.first_block, u.blocks, p.blocks.size()) || !fits(u.first_mark, u.marks, p.marks.size()) ||
        !fits(u.offset, u.size, p.code.size()) || u.entry_offset >= u.size)
      return false;
  for (const ArchivedPair& f : p.functions)
    if (f.offset >= p.units.size()) return false;
  for (const ArchivedPair& e : p.entries)
    if (e.offset >= p.code.size()) return false;
  for (const ArchivedExit& e : p.exits)
    if (e.kind == instrument::Exit::Direct && (!fits(e.offset, 4, p.code.size()) || e.stub >= p.code.size())) return false;
  for (uint32_t page : p.table_pages)
    if (page >= code.size() * 8 / Archive::page) return false;
  return true;
}

bool give_date(int fd, int64_t seconds) {
  timespec times[2] = {{0, UTIME_NOW}, {seconds, 0}};
  return futimens(fd, times) == 0;
}

bool write_all(int fd, std::span<const std::byte> bytes, uint64_t offset) {
  return pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes.size());
}

// Has another run, perhaps at this moment, written one that is hardly smaller?
bool is_there(const std::string& path, const Head& own, size_t units) {
  Head head;
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  return fd && read(fd.get(), &head, sizeof head) == sizeof head && head.checksum == checksum_of_head(head) &&
         !memcmp(&head, &own, offsetof(Head, counts)) && !is_worth_keeping(units, head.counts[0]);
}

// Archives that were not used for a month go, and what is left of runs that were killed.
void remove_old(const std::string& directory) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(directory, none)) {
    struct stat st;
    constexpr int64_t month = 31 * 24 * 3600;
    if (lstat(entry.path().c_str(), &st) || !S_ISREG(st.st_mode)) continue;
    if (std::max(st.st_atim.tv_sec, st.st_mtim.tv_sec) > time(nullptr) - month) continue;
    char word[8] = {};
    std::ifstream(entry.path()).read(word, sizeof word);
    if (!memcmp(word, &magic, sizeof word - 1)) unlink(entry.path().c_str());  // of whatever version
  }
}

}  // namespace

ArchiveKey key_of(const elf::Image& image) {
  return {image.build_id(), static_cast<int64_t>(image.bytes().size()), image.changed()};
}

bool is_worth_keeping(size_t units, size_t kept) { return units > kept + kept / 64; }

uint64_t Archive::code_offset() const { return static_cast<uint64_t>(parts_.code.data() - file_.data()); }

std::span<const std::byte> Archive::table_page(uint32_t index) const {
  return std::span<const std::byte>(file_.bytes()).subspan(table_offset_ + index * page, page);
}

// Most of the table is empty, in the file and here.
int Archive::copy_for_others() const {
  if (copy_) return copy_.get();
  Fd copy(memfd_create("weir-archive", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  bool done = copy && !ftruncate(copy.get(), static_cast<off_t>(file_.size())) &&
              write_all(copy.get(), parts_.code, code_offset()) && !fchmod(copy.get(), 0600);
  for (uint32_t n : parts_.table_pages) done = done && write_all(copy.get(), table_page(n), table_offset_ + n * page);
  if (!done || fcntl(copy.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)) return -1;
  copy_ = std::move(copy);
  return copy_.get();
}

// All programs of a run that use the same file share what is known of it.
std::shared_ptr<const Archive> Archive::open(const ArchiveKey& key, const std::string& tool, AppRange code) {
  static std::map<std::string, std::weak_ptr<const Archive>> opened;
  std::string path = file_name(key, tool, code);
  if (path.empty()) return nullptr;
  std::weak_ptr<const Archive>& known = opened[path];
  if (auto archive = known.lock(); archive && archive->is_file(path, key, code)) return archive;
  auto archive = open_file(path, key, code);
  known = archive;
  return archive;
}

// Is it still the one with this name, and of this file?
bool Archive::is_file(const std::string& path, const ArchiveKey& key, AppRange code) const {
  Head head, own = own_head(key, code);
  memcpy(&head, file_.data(), sizeof head);
  struct stat now, then;
  return !stat(path.c_str(), &now) && !fstat(fd_.get(), &then) && now.st_dev == then.st_dev && now.st_ino == then.st_ino &&
         !memcmp(&head, &own, offsetof(Head, counts)) && then.st_mtim.tv_sec == head.written && !then.st_mtim.tv_nsec;
}

std::shared_ptr<const Archive> Archive::open_file(const std::string& path, const ArchiveKey& key, AppRange code) {
  auto archive = std::make_shared<Archive>();
  archive->fd_ = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat st;
  if (!archive->fd_ || fstat(archive->fd_.get(), &st) || st.st_uid != geteuid() || (st.st_mode & 022)) return nullptr;
  if (st.st_mode & 077) fchmod(archive->fd_.get(), 0600);
  auto size = static_cast<uint64_t>(st.st_size);
  if (size < sizeof(Head) || size > max_size) return nullptr;
  // (Where files may not be executed, this fails.)
  void* p = mmap(nullptr, size, PROT_READ | PROT_EXEC, MAP_SHARED, archive->fd_.get(), 0);
  if (p == MAP_FAILED) return nullptr;
  archive->file_ = Mapping(p, size);
  std::span<const std::byte> bytes = archive->file_.bytes();
  Head head, own = own_head(key, code);
  memcpy(&head, p, sizeof head);
  if (!own.magic || head.checksum != checksum_of_head(head) || memcmp(&head, &own, offsetof(Head, counts))) return nullptr;
  if (st.st_mtim.tv_sec != head.written || st.st_mtim.tv_nsec) return nullptr;

  uint64_t at = sizeof head, i = 0;
  bool fits = true;
  ArchiveParts& parts = archive->parts_;
  for_each_array(parts, [&](auto& array) {
    using T = typename std::remove_reference_t<decltype(array)>::element_type;
    uint64_t count = head.counts[i++];
    fits = fits && count <= (size - at) / sizeof(T);
    if (!fits) return;
    array = {reinterpret_cast<T*>(bytes.data() + at), count};
    at = up(at + count * sizeof(T), 8);
    fits = at <= size;
  });
  at = up(at, page);
  if (!fits || head.code_size % page || at > size || head.code_size > size - at) return nullptr;
  parts.code = bytes.subspan(at, head.code_size);
  archive->table_offset_ = at + head.code_size;
  archive->not_supported_ = static_cast<uint32_t>(head.not_supported);
  archive->arena_ = {head.arena};
  if (size - archive->table_offset_ != code.size() * 8) return nullptr;
  if (!memcmp(head.boot, own.boot, sizeof head.boot)) return archive;
  // The first use since the machine was started.
  if (checksum_of(bytes.subspan(sizeof head, archive->table_offset_ - sizeof head)) != head.contents ||
      !is_sound(parts, code))
    return nullptr;
  memcpy(head.boot, own.boot, sizeof head.boot);
  head.checksum = checksum_of_head(head);
  // (By name it might be another one by now.)
  std::string same = fmt::format("/proc/self/fd/{}", archive->fd_.get());
  if (Fd writable(::open(same.c_str(), O_WRONLY | O_CLOEXEC)); writable)
    (void)(write_all(writable.get(), std::as_bytes(std::span(&head, 1)), 0) && give_date(writable.get(), head.written));
  return archive;
}

void Archive::save(const ArchiveKey& key, const std::string& tool, AppRange code, CachePc arena, const ArchiveParts& parts,
                   uint32_t not_supported, const std::function<const std::byte*(uint32_t)>& table_page) {
  std::string path = file_name(key, tool, code);
  Head head = own_head(key, code);
  if (path.empty() || !head.magic || is_there(path, head, parts.units.size())) return;
  std::vector<std::byte> out(sizeof head);
  size_t i = 0;
  ArchiveParts copy = parts;
  for_each_array(copy, [&](auto& array) {
    head.counts[i++] = array.size();
    auto bytes = std::as_bytes(array);
    out.insert(out.end(), bytes.begin(), bytes.end());
    out.resize(up(out.size(), 8));
  });
  out.resize(up(out.size(), page));
  out.insert(out.end(), parts.code.begin(), parts.code.end());
  head.code_size = parts.code.size();
  head.not_supported = not_supported;
  head.arena = arena.value;
  head.written = time(nullptr) & ~int64_t{1};  // (some file systems keep every other second)
  head.contents = checksum_of(std::span<const std::byte>(out).subspan(sizeof head));
  head.checksum = checksum_of_head(head);
  memcpy(out.data(), &head, sizeof head);
  uint64_t total = out.size() + code.size() * 8;
  if (total > max_size) return;

  std::string where = path.substr(0, path.rfind('/'));
  static bool once = (remove_old(where), true);
  (void)once;
  // It has no name before it is whole, where the file system can do that.
  std::string temporary = fmt::format("{}.{}", path, getpid());
  Fd fd(::open(where.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600));
  std::string nameless = fd ? fmt::format("/proc/self/fd/{}", fd.get()) : "";
  if (!fd) fd = Fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  bool written = fd && !ftruncate(fd.get(), static_cast<off_t>(total)) && write_all(fd.get(), out, 0);
  // Pages that lie side by side, here and there, are written together.
  for (size_t n = 0, next; written && n < parts.table_pages.size(); n = next) {
    const std::byte* first = table_page(parts.table_pages[n]);
    auto follows = [&](size_t m) {
      return parts.table_pages[m] - parts.table_pages[n] == m - n &&
             table_page(parts.table_pages[m]) == first + (m - n) * page;
    };
    for (next = n + 1; next < parts.table_pages.size() && follows(next);) next++;
    written = write_all(fd.get(), {first, (next - n) * page}, out.size() + parts.table_pages[n] * page);
  }
  written = written && give_date(fd.get(), head.written);
  if (written && !nameless.empty())
    written = !linkat(AT_FDCWD, nameless.c_str(), AT_FDCWD, temporary.c_str(), AT_SYMLINK_FOLLOW);
  if (!written || rename(temporary.c_str(), path.c_str())) unlink(temporary.c_str());
}

}  // namespace weir::engine
