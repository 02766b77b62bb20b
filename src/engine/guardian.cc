#include "engine/guardian.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>

namespace weir::engine {

namespace {
constexpr size_t table_size = 64 << 10;  // 16,384 processes, as many as there are thread blocks

[[noreturn]] void guard(int life, std::span<const pid_t> pids) {
  setsid();  // the terminal's signals are not for it
  prctl(PR_SET_NAME, "weir-guardian");
  dup2(life, 0);
  close_range(1, ~0u, 0);
  char word;
  ssize_t n;
  do n = read(0, &word, 1);
  while (n < 0 && errno == EINTR);
  if (n == 0)
    for (pid_t pid : pids)
      if (pid > 1) kill(pid, SIGKILL);
  _exit(0);
}
}  // namespace

Result<Guardian> Guardian::start() {
  Guardian g;
  void* p = mmap(nullptr, table_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int ends[2];
  if (p == MAP_FAILED || pipe2(ends, O_CLOEXEC)) return fail_errno("guardian");
  g.shared_ = Mapping(p, table_size);
  Fd reads(ends[0]);
  g.life_ = Fd(ends[1]);
  pid_t pid = fork();
  if (pid < 0) return fail_errno("guardian");
  if (pid == 0) guard(reads.get(), g.pids());
  return g;
}

void Guardian::watch(pid_t pid) {
  if (auto free = std::find(pids().begin(), pids().end(), 0); free != pids().end()) *free = pid;
}

void Guardian::forget(pid_t pid) { std::replace(pids().begin(), pids().end(), pid, 0); }

void Guardian::dismiss() { [[maybe_unused]] ssize_t n = write(life_.get(), "", 1); }

}  // namespace weir::engine
