#include "symbols/jit_dump.h"

#include <elf.h>
#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <vector>

#include "process/memory.h"
#include "symbols/reader.h"

namespace weir::symbols {

namespace {

enum Kind : uint32_t { Load = 0, Move = 1 };
constexpr uint32_t magic = 0x4a695444, header_size = 40, record_header_size = 16, most_records = 4'000'000;
// Of a record, that much is read: what stands before a name, and the name. The code behind it is of no interest.
constexpr size_t part_size = 56 + 4096;

struct Header {
  uint32_t size, pid;
};

// Up to `size` bytes of the file.
Reader read_part(int file, uint64_t offset, size_t size, std::vector<uint8_t>& buffer) {
  buffer.resize(size);
  ssize_t n = pread(file, buffer.data(), size, static_cast<off_t>(offset));
  return {buffer.data(), buffer.data() + (n > 0 ? n : 0)};
}

std::optional<Header> read_header(int file) {
  std::vector<uint8_t> buffer;
  Reader r = read_part(file, 0, header_size, buffer);
  if (r.fixed(4) != magic) return {};
  r.skip(4);
  auto size = static_cast<uint32_t>(r.fixed(4));
  auto machine = r.fixed(4);
  r.skip(4);
  auto pid = static_cast<uint32_t>(r.fixed(4));
  if (!r.ok || machine != EM_X86_64 || size < header_size) return {};
  return Header{size, pid};
}

void take_load(Reader r, WrittenCode& code) {
  r.skip(8);
  AppPc begin{r.fixed(8)};
  r.skip(8);
  uint64_t size = r.fixed(8);
  r.skip(8);
  if (r.ok) code.add(begin, size, r.string());
}

void take_move(Reader r, WrittenCode& code) {
  r.skip(8);
  AppPc to{r.fixed(8)}, from{r.fixed(8)};
  r.skip(8);
  uint64_t size = r.fixed(8);
  auto moved = code.find(from);
  if (!r.ok || moved == code.entries().end() || moved->first != from) return;
  code.add(to, size, std::string(moved->second.name));  // (a copy: adding may remove what it comes from)
}

// A regular file that is opened without waiting.
Fd open_dump(const std::string& path, struct stat& st) {
  Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW));
  return file && fstat(file.get(), &st) == 0 && S_ISREG(st.st_mode) ? std::move(file) : Fd();
}

bool is_dump_name(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("jit-") && name.ends_with(".dump");
}

Fd find_mapped(pid_t pid) {
  auto regions = process::regions(pid);
  if (!regions) return {};
  struct stat st{};
  for (const process::Region& r : *regions) {
    if (!r.executable || !is_dump_name(r.path)) continue;
    for (const std::string& root : {fmt::format("/proc/{}/root", pid), std::string()})
      if (Fd file = open_dump(root + r.path, st); file && st.st_ino == r.inode && read_header(file.get())) return file;
  }
  return {};
}

// Where V8, .NET and CPython put them, and, in a directory for each, the agents of java and LLVM's compilers.
std::vector<std::string> usual_directories() {
  std::vector<std::string> all = {".", "/tmp"};
  const char *own = getenv("JITDUMPDIR"), *home = getenv("HOME");
  std::error_code error;
  for (auto& entry : std::filesystem::directory_iterator(fmt::format("{}/.debug/jit", own    ? own
                                                                                      : home ? home
                                                                                             : "."),
                                                         error))
    all.push_back(entry.path());
  return all;
}

}  // namespace

void JitDump::read(int file, WrittenCode& code) {
  auto header = read_header(file);
  struct stat st{};
  if (!header || fstat(file, &st)) return;
  auto end = static_cast<uint64_t>(st.st_size);
  std::vector<uint8_t> buffer;
  for (read_ = std::max<uint64_t>(read_, header->size); read_ < end && records_ < most_records; records_++) {
    Reader r = read_part(file, read_, part_size, buffer);
    auto kind = static_cast<uint32_t>(r.fixed(4)), size = static_cast<uint32_t>(r.fixed(4));
    r.skip(8);
    // A record that is not whole is still being written, or there is nothing sensible behind it.
    if (!r.ok || size < record_header_size || size > end - read_) return;
    r = r.take(std::min<uint64_t>(size - record_header_size, r.left()));
    if (kind == Load) take_load(r, code);
    if (kind == Move) take_move(r, code);
    read_ += size;
  }
}

Fd find_jit_dump(pid_t pid, int64_t started) {
  if (Fd mapped = find_mapped(pid)) return mapped;
  struct stat st{};
  for (const std::string& directory : usual_directories()) {
    Fd file = open_dump(fmt::format("{}/jit-{}.dump", directory, pid), st);
    if (!file || st.st_mtim.tv_sec < started / 1'000'000) continue;
    if (auto header = read_header(file.get()); header && header->pid == static_cast<uint32_t>(pid)) return file;
  }
  return {};
}

}  // namespace weir::symbols
