#include "process/memory.h"

#include <fcntl.h>
#include <sys/uio.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <sstream>

#include "base/fd.h"
#include "process/maps.h"

namespace weir::process {

Result<std::string> read_whole(const std::string& path) {
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_errno("{}", path);
  std::string text(16 << 10, 0);
  size_t n = 0;
  for (;;) {
    ssize_t got = ::read(fd.get(), text.data() + n, text.size() - n);
    if (got < 0) return fail_errno("{}", path);
    if (got == 0) break;
    n += static_cast<size_t>(got);
    if (text.size() - n < 4096) text.resize(text.size() * 2);
  }
  text.resize(n);
  return text;
}

// The second word, the name, may have blanks and brackets in it.
Stat stat_of(pid_t pid) {
  Stat stat;
  std::string text = read_whole(fmt::format("/proc/{}/stat", pid)).value_or("");
  std::istringstream rest(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  for (int field = StatState; field < stat_fields; field++) rest >> stat.words[field];
  return stat;
}

Result<std::vector<Region>> regions(pid_t pid) {
  TRY(std::string text, read_whole(fmt::format("/proc/{}/maps", pid)));
  return parse_maps(text);
}

// 7f0000000000-7f0000001000 r-xp 00000000 08:01 1234    /path
std::vector<Region> parse_maps(std::string_view text) {
  std::vector<Region> result;
  const char* p = text.data();
  const char* end = p + text.size();
  while (p < end) {
    const char* line_end = std::find(p, end, '\n');
    Region r{};
    auto number = [&](uint64_t& value, int base) {
      p = std::from_chars(p, line_end, value, base).ptr;
      if (p < line_end) p++;
    };
    number(r.range.begin.value, 16);
    number(r.range.end.value, 16);
    if (line_end - p < 5) break;
    r.readable = p[0] == 'r', r.writable = p[1] == 'w', r.executable = p[2] == 'x', r.shared = p[3] == 's';
    p += 5;
    number(r.offset, 16);
    p = std::find(p, line_end, ' ');  // the device
    if (p < line_end) p++;
    number(r.inode, 10);
    while (p < line_end && *p == ' ') p++;
    r.path.assign(p, line_end);
    result.push_back(std::move(r));
    if (line_end == end) break;
    p = line_end + 1;
  }
  return result;
}

Result<std::vector<AppPc>> private_pages(pid_t pid, AppRange range) {
  constexpr uint64_t page = 4096, present = uint64_t{1} << 63, swapped = uint64_t{1} << 62, of_file = uint64_t{1} << 61;
  Fd fd(open(fmt::format("/proc/{}/pagemap", pid).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_errno("/proc/{}/pagemap", pid);
  std::vector<uint64_t> entries(range.size() / page);
  auto size = static_cast<ssize_t>(entries.size() * 8);
  if (pread(fd.get(), entries.data(), entries.size() * 8, static_cast<off_t>(range.begin.value / page * 8)) != size)
    return fail_errno("/proc/{}/pagemap", pid);
  std::vector<AppPc> pages;
  for (size_t i = 0; i < entries.size(); i++)
    if ((entries[i] & swapped) || ((entries[i] & present) && !(entries[i] & of_file)))
      pages.push_back(range.begin + static_cast<int64_t>(i * page));
  return pages;
}

pid_t living_thread(pid_t pid) {
  auto has_ended = [](pid_t tid) { return std::string_view("ZX").contains(stat_of(tid).words[StatState]); };
  std::error_code none;
  if (!has_ended(pid)) return pid;
  for (const auto& task : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), none))
    if (auto tid = static_cast<pid_t>(atoi(task.path().filename().c_str())); !has_ended(tid)) return tid;
  return pid;
}

size_t read(pid_t pid, uint64_t address, std::span<std::byte> out) {
  size_t n = 0;
  while (n < out.size()) {
    iovec local{out.data() + n, out.size() - n}, remote{reinterpret_cast<void*>(address + n), out.size() - n};
    ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (got < 0 && errno == ESRCH && living_thread(pid) != pid) return read(living_thread(pid), address, out);
    if (got <= 0) break;
    n += static_cast<size_t>(got);
  }
  return n;
}

// (A debugger may read all that is mapped, whatever its protection.)
size_t read_code(pid_t pid, uint64_t address, std::span<std::byte> out) {
  size_t n = read(pid, address, out);
  if (n == out.size()) return n;
  Fd memory = open_to_read(fmt::format("/proc/{}/mem", living_thread(pid)));
  while (memory && n < out.size()) {
    ssize_t got = pread(memory.get(), out.data() + n, out.size() - n, static_cast<off_t>(address + n));
    if (got <= 0) break;
    n += static_cast<size_t>(got);
  }
  return n;
}

}  // namespace weir::process
