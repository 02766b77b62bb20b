#include "process/program.h"

#include <elf.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <fstream>
#include <sstream>

namespace weir::process {

std::string program_name(pid_t pid) {
  char name[4096];
  ssize_t n = readlink(fmt::format("/proc/{}/exe", pid).c_str(), name, sizeof name);
  return n > 0 ? std::string(name, static_cast<size_t>(n)) : "?";
}

std::vector<std::string> command_of(pid_t pid) {
  // (A process may say that all its memory is arguments.)
  constexpr size_t enough = 4 << 20;
  std::ifstream file(fmt::format("/proc/{}/cmdline", pid), std::ios::binary);
  std::string text;
  char part[4096];
  while (text.size() < enough && (file.read(part, sizeof part), file.gcount()))
    text.append(part, static_cast<size_t>(file.gcount()));
  std::istringstream rest(text);
  std::vector<std::string> words;
  for (std::string word; std::getline(rest, word, '\0');) words.push_back(word);
  return words;
}

int64_t microseconds_now() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return t.tv_sec * int64_t{1'000'000} + t.tv_nsec / 1000;
}

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

Result<std::shared_ptr<elf::Image>> open_image(pid_t pid, const Region& region) {
  if (region.path == "[vdso]") {
    std::vector<std::byte> bytes(region.range.size());
    read(pid, region.range.begin.value, bytes);
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

uint64_t bias_of(const Region& r, const elf::Image& image) {
  // By the executable segment that the mapping's first page holds a part of: segments may share a page of the file.
  uint64_t bias = 0;
  for (const elf::Segment& x : image.segments())
    if (x.type == PT_LOAD && (x.flags & PF_X) && r.offset >= (x.offset & ~uint64_t{4095}) && r.offset < x.offset + x.file_size)
      bias = r.range.begin.value - (r.offset - x.offset + x.vaddr.value);
  return bias;
}

// (As long as the process lives, it may be in a /tmp of its own.)
Fd open_perf_map(pid_t pid, pid_t own_pid, int64_t started) {
  struct stat st{};
  for (const std::string& root : {fmt::format("/proc/{}/root", pid), std::string()}) {
    Fd file(open(fmt::format("{}/tmp/perf-{}.map", root, own_pid).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    bool is_ours = file && fstat(file.get(), &st) == 0 && S_ISREG(st.st_mode) &&
                   st.st_mtim.tv_sec >= started / 1'000'000;  // else it is that of another process that had the number
    if (is_ours) return file;
  }
  return {};
}

pid_t own_id(pid_t id) {
  std::ifstream file(fmt::format("/proc/{}/status", id));
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("NSpid:")) return static_cast<pid_t>(atoi(line.c_str() + line.find_last_of(" \t") + 1));
  return 0;
}

bool is_stopped(pid_t pid) { return stat_of(pid).words[StatState] == "T"; }

namespace {
// Continues this process when `pid`, which is stopped, goes on: somebody may continue it alone.
pid_t watch_stopped(pid_t pid) {
  pid_t weir = getpid(), watcher = fork();
  if (watcher) return watcher;
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != weir) _exit(0);  // (it was killed before)
  close_range(0, ~0u, 0);
  for (timespec t{0, 20'000'000};; nanosleep(&t, nullptr))
    if (!is_stopped(pid) && is_stopped(weir)) kill(weir, SIGCONT);
}
}  // namespace

void stop_with(pid_t pid) {
  pid_t watcher = watch_stopped(pid);
  raise(SIGSTOP);
  if (watcher > 0 && !kill(watcher, SIGKILL)) waitpid(watcher, nullptr, 0);
}

}  // namespace weir::process
