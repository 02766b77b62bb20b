#include "engine/keeper.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include "base/fd.h"
#include "base/result.h"

namespace weir::engine {

namespace {

// Who a process is to the kernel when it opens a file.
struct Identity {
  uid_t user = 0;
  gid_t group = 0;
  uint64_t capabilities = 0;
};

std::optional<Identity> identity_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  Identity who;
  int found = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key, real, effective, saved;
    words >> key;
    if (key == "Uid:" && words >> real >> effective >> saved >> who.user) found++;
    if (key == "Gid:" && words >> real >> effective >> saved >> who.group) found++;
    if (key == "CapPrm:" && words >> std::hex >> who.capabilities) found++;
  }
  return found == 3 ? std::optional(who) : std::nullopt;
}

[[noreturn]] void keep(pid_t weir, const Identity& who, int ready) {
  prctl(PR_SET_NAME, "weir-keeper");
  setsid();  // the terminal's signals are not for it
  for (int sig : {SIGCHLD, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT}) signal(sig, SIG_IGN);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  // (The system calls: the library's functions want to change threads that a forked process does not have.)
  syscall(SYS_setgroups, 0, nullptr);
  bool dropped = syscall(SYS_setresgid, who.group, who.group, who.group) == 0 &&
                 syscall(SYS_setresuid, who.user, who.user, who.user) == 0 && syscall(SYS_capset, &header, none) == 0;
  if (!dropped || prctl(PR_SET_DUMPABLE, 1) || prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != weir) _exit(1);
  if (write(ready, "", 1) != 1) _exit(1);
  for (;;) pause();
}

}  // namespace

Keeper::Keeper(pid_t pid) : pid_(getpid()) {
  if (geteuid()) return;  // what can drop nothing
  static const auto own = identity_of(getpid());
  auto other = identity_of(pid);
  if (!other || !own) return;
  bool may_look = other->user == own->user && other->group == own->group && !(own->capabilities & ~other->capabilities);
  int ends[2];
  if (may_look || pipe2(ends, O_CLOEXEC)) return;
  Fd reads(ends[0]), writes(ends[1]);
  pid_t keeper = fork();
  if (keeper < 0) return;
  if (keeper == 0) keep(pid_, *other, writes.get());
  writes = Fd();
  char word;
  pid_ = keeper;
  if (read(reads.get(), &word, 1) == 1) return;
  dismiss();
  pid_ = getpid();
}

void Keeper::dismiss() {
  pid_t pid = std::exchange(pid_, 0);
  if (!pid || pid == getpid()) return;
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

Keeper::Keeper(Keeper&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}
Keeper& Keeper::operator=(Keeper&& other) noexcept {
  std::swap(pid_, other.pid_);
  return *this;
}

}  // namespace weir::engine
