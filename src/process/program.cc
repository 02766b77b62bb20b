#include "process/program.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace weir::process {

std::string program_name(pid_t pid) {
  char name[4096];
  ssize_t n = readlink(fmt::format("/proc/{}/exe", pid).c_str(), name, sizeof name);
  return n > 0 ? std::string(name, static_cast<size_t>(n)) : "?";
}

std::string thread_name(pid_t pid, pid_t tid) {
  std::string name;
  std::getline(std::ifstream(fmt::format("/proc/{}/task/{}/comm", pid, tid)), name);
  return name;
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
  // Who writes a title over its arguments (redis, postgres) fills the rest of their room with zeros.
  if (words.size() > 2 && words.back().empty() && words[words.size() - 2].empty())
    while (words.size() > 1 && words.back().empty()) words.pop_back();
  return words;
}

int64_t microseconds_now() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return t.tv_sec * int64_t{1'000'000} + t.tv_nsec / 1000;
}

int64_t began(pid_t pid) {
  timespec up;
  clock_gettime(CLOCK_BOOTTIME, &up);
  double running = double(up.tv_sec) + double(up.tv_nsec) / 1e9 -
                   double(stat_of(pid).number(StatStartTime)) / double(sysconf(_SC_CLK_TCK));
  return microseconds_now() - static_cast<int64_t>(running * 1e6);
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
