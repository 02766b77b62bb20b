#include "process/keeper.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "base/fd.h"
#include "base/result.h"

namespace weir::process {

namespace {

uint64_t capabilities_of(pid_t pid) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, pid};
  __user_cap_data_struct data[2] = {};
  syscall(SYS_capget, &header, data);
  return uint64_t{data[1].effective} << 32 | data[0].effective;
}

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

// Executes weir as the keeper. `ready` and what is lent are all that stays open.
[[noreturn]] void become_keeper(const Identity& who, int ready, std::span<const Keeper::Loan> loans) {
  close_range(0, ~0u, CLOSE_RANGE_CLOEXEC);
  fcntl(ready, F_SETFD, 0);
  for (const Keeper::Loan& loan : loans) {
    Fd again(open(fmt::format("/proc/self/fd/{}", loan.file).c_str(), (loan.is_writable ? O_RDWR : O_RDONLY) | O_CLOEXEC));
    if (!again || dup2(again.get(), loan.file) < 0) _exit(1);
  }
  std::string words[] = {"weir-keeper",
                         Keeper::verb,
                         std::to_string(getppid()),
                         std::to_string(ready),
                         std::to_string(who.user),
                         std::to_string(who.group)};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(),
                       words[4].data(), words[5].data(), nullptr};
  char* environment[] = {nullptr};
  execve("/proc/self/exe", arguments, environment);
  _exit(1);
}

// How many keepers have a file, by its inode. (All are in the kernel's one place for files without a name.)
std::map<ino_t, uint32_t> lent;

ino_t inode_of(int file) {
  struct stat st{};
  return fstat(file, &st) ? 0 : st.st_ino;
}

// Shared memory is for our user's eyes only. (While it is lent: in /proc only who may look into its keeper comes to it.)
void lend(int file, bool is_writable) {
  if (!lent[inode_of(file)]++) fchmod(file, is_writable ? 0666 : 0644);
}
void take_back(int file) {
  auto count = lent.find(inode_of(file));
  if (count == lent.end() || --count->second) return;
  fchmod(file, 0600);
  lent.erase(count);
}

}  // namespace

// keeper WEIR READY USER GROUP
int Keeper::keep(int argc, char** argv) {
  if (argc != 6) return 1;
  auto number = [&](int i) { return atoi(argv[i]); };
  int ready = number(3);
  prctl(PR_SET_NAME, "weir-keeper");
  setsid();  // the terminal's signals are not for it
  for (int sig : {SIGCHLD, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT}) signal(sig, SIG_IGN);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  auto user = static_cast<uid_t>(strtoul(argv[4], nullptr, 10));
  auto group = static_cast<gid_t>(strtoul(argv[5], nullptr, 10));
  setgroups(0, nullptr);
  bool dropped =
      setresgid(group, group, group) == 0 && setresuid(user, user, user) == 0 && syscall(SYS_capset, &header, none) == 0;
  if (!dropped || prctl(PR_SET_DUMPABLE, 1) || prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != number(2)) return 1;
  if (write(ready, "", 1) != 1) return 1;
  close(ready);
  for (;;) pause();
}

// (Who becomes somebody else loses its capabilities. Who keeps them may look anywhere; others have none to lose.)
bool Keeper::is_needed(pid_t pid) { return geteuid() == 0 && (capabilities_of(getpid()) & ~capabilities_of(pid)); }

bool Keeper::is_our_user(pid_t pid) {
  auto who = identity_of(pid);
  return who && who->user == geteuid();
}

Keeper::Keeper(pid_t pid, std::span<const Loan> loans) : pid_(getpid()) {
  if (!is_needed(pid)) return;
  if (!begin(pid, loans)) {
    dismiss();
    pid_ = getpid();
  }
}

bool Keeper::begin(pid_t pid, std::span<const Loan> loans) {
  auto other = identity_of(pid);
  int ends[2];
  if (!other || pipe2(ends, O_CLOEXEC)) return false;
  Fd reads(ends[0]), writes(ends[1]);
  pid_t keeper = fork();
  if (keeper < 0) return false;
  if (keeper == 0) become_keeper(*other, writes.get(), loans);
  pid_ = keeper;
  process_ = Fd(static_cast<int>(syscall(SYS_pidfd_open, keeper, 0)));
  writes = Fd();
  // It is its user's, who may have stopped it.
  constexpr int patience = 5000;  // ms
  pollfd ready{reads.get(), POLLIN, 0};
  char word;
  while (poll(&ready, 1, patience) < 0)
    if (errno != EINTR) return false;
  if (!(ready.revents & POLLIN) || read(reads.get(), &word, 1) != 1) return false;
  for (const Loan& loan : loans) files_.push_back({loan, Fd(fcntl(loan.file, F_DUPFD_CLOEXEC, 0))});
  who_ = *other;
  open_files();
  return true;
}

void Keeper::open_files() {
  if (who_.user == geteuid() || std::exchange(is_open_, true)) return;
  for (const Lent& l : files_) lend(l.file.get(), l.loan.is_writable);
}

void Keeper::close_files() {
  if (!std::exchange(is_open_, false)) return;
  for (const Lent& l : files_) take_back(l.file.get());
}

bool Keeper::serves(pid_t pid, std::span<const Loan> loans) const {
  pollfd gone{process_.get(), POLLIN, 0};
  if (!process_ || poll(&gone, 1, 0) || identity_of(pid) != who_) return false;
  return std::ranges::all_of(loans, [&](const Loan& loan) {
    return std::ranges::any_of(files_, [&](const Lent& l) {
      return l.loan.file == loan.file && l.loan.is_writable == loan.is_writable &&
             inode_of(l.file.get()) == inode_of(loan.file);
    });
  });
}

// (Somebody may have ended it, and reap() waited for it: its number may be another's.)
void Keeper::dismiss() {
  close_files();
  files_.clear();
  if (Fd process = std::exchange(process_, Fd())) {
    syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
    waitid(P_PIDFD, static_cast<id_t>(process.get()), nullptr, WEXITED);
  }
  pid_ = 0;
}

Keeper& Keeper::operator=(Keeper&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(process_, other.process_);
  std::swap(who_, other.who_);
  std::swap(files_, other.files_);
  std::swap(is_open_, other.is_open_);
  return *this;
}

}  // namespace weir::process
