#include "engine/keeper.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
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

uint64_t capabilities_of(pid_t pid) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, pid};
  __user_cap_data_struct data[2] = {};
  syscall(SYS_capget, &header, data);
  return uint64_t{data[1].permitted} << 32 | data[0].permitted;
}

// Who a process is to the kernel when it opens a file.
struct Identity {
  uid_t user = 0;
  gid_t group = 0;
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
  }
  return found == 2 ? std::optional(who) : std::nullopt;
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

// (Who becomes somebody else loses its capabilities. Who keeps them may look anywhere; others have none to lose.)
bool Keeper::is_needed(pid_t pid) { return geteuid() == 0 && (capabilities_of(getpid()) & ~capabilities_of(pid)); }

void Keeper::lend(int file) const {
  if (pid_ != getpid()) fchmod(file, 0666);  // (in /proc only that user comes to it)
}

Keeper::Keeper(pid_t pid) : pid_(getpid()) {
  if (!is_needed(pid)) return;
  auto other = identity_of(pid);
  int ends[2];
  if (!other || pipe2(ends, O_CLOEXEC)) return;
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
