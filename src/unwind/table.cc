#include "unwind/table.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "base/cache.h"

namespace weir::unwind {

namespace {

constexpr uint64_t magic = 0x32646e7775726557;  // "Weruwnd2"
constexpr uint64_t max_size = uint64_t{1} << 30;
constexpr int64_t month = 31 * 24 * 3600;

struct FileHead {
  uint64_t magic;
  int64_t image_size, image_seconds, image_nanoseconds;
  uint64_t checksum;  // of this head, up to here, and of the table's
};

FileHead own_head(const elf::Image& image) {
  timespec modified = image.modified();
  return {magic, static_cast<int64_t>(image.bytes().size()), modified.tv_sec, modified.tv_nsec, 0};
}

// The table's own head has a checksum of the rest.
uint64_t checksum(const FileHead& head, std::span<const std::byte> table) {
  uint64_t own = checksum_of(std::as_bytes(std::span(&head, 1)).first(offsetof(FileHead, checksum)));
  return checksum_of(table.first(sizeof(rt::TableHead)), own);
}

std::string file_name(const elf::Image& image, bool with_debug_frame) {
  std::string directory = cache_directory(), id = image.build_id();
  if (directory.empty() || id.empty()) return {};
  return fmt::format("{}/unwind-{}{}", directory, id, with_debug_frame ? "-debug" : "");
}

std::shared_ptr<const Table> read_file(const std::string& path, const elf::Image& image) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat st;
  if (!fd || fstat(fd.get(), &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022)) return nullptr;
  auto size = static_cast<uint64_t>(st.st_size);
  if (size < sizeof(FileHead) + sizeof(rt::TableHead) || size > max_size) return nullptr;
  void* p = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (p == MAP_FAILED) return nullptr;
  auto table = std::make_shared<Table>(Mapping(p, size), sizeof(FileHead));
  FileHead head, own = own_head(image);
  memcpy(&head, p, sizeof head);
  bool is_it = !memcmp(&head, &own, offsetof(FileHead, checksum)) && head.checksum == checksum(head, table->bytes());
  // Its date is when it was last used: what was not for a month goes.
  if (!is_it || !is_sound(table->bytes())) return nullptr;
  if (st.st_mtim.tv_sec < time(nullptr) - month / 4) futimens(fd.get(), nullptr);
  return table;
}

// Tables that were not used for a month go, and what is left of runs that were killed.
void remove_old(const std::filesystem::path& directory) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(directory, none)) {
    struct stat st;
    if (!entry.path().filename().string().starts_with("unwind-") || lstat(entry.path().c_str(), &st) != 0) continue;
    if (st.st_mtim.tv_sec < time(nullptr) - month) unlink(entry.path().c_str());
  }
}

// Whole or not at all. That it fails is no failure: the next run compiles again.
void write_file(const std::string& path, const elf::Image& image, std::span<const std::byte> table) {
  FileHead head = own_head(image);
  head.checksum = checksum(head, table);
  if (table.size() > max_size - sizeof head) return;
  remove_old(std::filesystem::path(path).parent_path());
  std::string temporary = fmt::format("{}.{}", path, getpid());
  Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return;
  bool written = write(fd.get(), &head, sizeof head) == sizeof head &&
                 write(fd.get(), table.data(), table.size()) == static_cast<ssize_t>(table.size());
  if (!written || rename(temporary.c_str(), path.c_str()) != 0) unlink(temporary.c_str());
}

}  // namespace

bool is_sound(std::span<const std::byte> bytes) {
  if (!rt::is_table(bytes.data(), bytes.size())) return false;
  const rt::TableHead& head = *reinterpret_cast<const rt::TableHead*>(bytes.data());
  std::span first(rt::first_rows(head), head.pages + size_t{1});
  std::span rules(rt::rules_of(head), head.rule_count);
  std::span rows(rt::rows_of(head), head.row_count);
  if (checksum_of(bytes.subspan(sizeof head)) != head.checksum || first.back() != rows.size()) return false;
  for (size_t i = 0; i + 1 < first.size(); ++i) {
    if (first[i] >= first[i + 1] || first[i + 1] > rows.size() || rows[first[i]].offset != 0) return false;
    for (uint32_t r = first[i]; r + 1 < first[i + 1]; ++r)
      if (rows[r].offset >= rows[r + 1].offset) return false;
  }
  return std::ranges::all_of(rows, [&](rt::Row r) { return r.rule < rules.size() && r.offset < 1 << rt::page_shift; }) &&
         std::ranges::all_of(rules, [](const rt::Rule& r) {
           return r.kind < rt::Rule::KindCount && r.rbp < rt::Rule::RbpCount && r.reg < 16;
         });
}

Result<std::shared_ptr<const Table>> table_of(const elf::Image& image, const DebugFrame& debug_frame) {
  std::string path = file_name(image, debug_frame != nullptr);
  if (!path.empty())
    if (auto table = read_file(path, image)) return table;
  TRY(std::vector<std::byte> made, compile(image, debug_frame ? debug_frame() : std::vector<std::byte>()));
  if (!path.empty()) write_file(path, image, made);
  return std::make_shared<const Table>(std::move(made));
}

}  // namespace weir::unwind
