#include "engine/guardian.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <vector>

#include "process/memory.h"
#include "rt/abi.h"

namespace weir::engine {

namespace {
// A number may be another process's by now: when that one began tells.
struct Watched {
  uint64_t start;  // in the kernel's words; 0: not known
  pid_t pid;       // 0: nobody
};
}  // namespace

struct Guardian::Shared {
  uint64_t in_charge;  // the number of the guardian that is; 0: none
  uint32_t has_copy;   // Weir may end before the copy that goes on for it has a guardian of its own
  Watched watched[rt::max_slots];
  Occupant roster[rt::max_slots];
};

namespace {

uint64_t start_of(pid_t pid) { return process::stat_of(pid).number(process::StatStartTime); }

// Were there any? (The descriptor comes before the look at the start: what that is true of cannot be anybody else's then.)
bool end_all(std::span<const Watched> all) {
  std::vector<Fd> ended;
  bool any = false;
  for (const Watched& w : all) {
    if (w.pid <= 1) continue;
    any = true;  // (the kernel may have ended it just now)
    Fd process(static_cast<int>(syscall(SYS_pidfd_open, w.pid, 0)));
    uint64_t start = start_of(w.pid);
    bool is_stranger = start && w.start && start != w.start;
    if (is_stranger) continue;
    if (process) syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
    else if (start) kill(w.pid, SIGKILL);  // (there are no such descriptors here)
    if (process) ended.push_back(std::move(process));
  }
  for (const Fd& process : ended) {
    pollfd gone{process.get(), POLLIN, 0};
    constexpr int patience = 5000;  // ms: one that the kernel does not let go is not waited for
    while (poll(&gone, 1, patience) < 0 && errno == EINTR) {}
  }
  return any;
}

}  // namespace

Result<Guardian> Guardian::create() {
  Guardian g;
  void* p = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return fail_errno("guardian");
  g.shared_ = Mapping(p, sizeof(Shared));
  return g;
}

std::span<Guardian::Occupant> Guardian::roster() const { return shared().roster; }

namespace {
// Others may hold the pipe, or have none: so the process is looked at, too. (It may have left a copy behind, which has the pipe.)
void await_end(int life, int weir, const uint32_t& has_copy) {
  pollfd ends[] = {{life, POLLIN, 0}, {weir, POLLIN, 0}};
  while (!ends[0].revents) {
    int n = poll(ends, 2, -1);
    if (n < 0 && errno != EINTR) return;
    if (n < 0 || !ends[1].revents) continue;
    if (!__atomic_load_n(&has_copy, __ATOMIC_SEQ_CST)) return;
    ends[1] = {-1, 0, 0};
  }
}
}  // namespace

// Returns when Weir has gone without a word, and this is the guardian that it had then.
void Guardian::guard(uint64_t number, int life, int weir) {
  setsid();  // the terminal's signals are not for it
  prctl(PR_SET_NAME, "weir-guardian");
  if (Fd null(open("/dev/null", O_RDONLY)); null) dup2(null.get(), 0);
  await_end(life, weir, shared().has_copy);
  if (__atomic_load_n(&shared().in_charge, __ATOMIC_SEQ_CST) != number) _exit(0);
  has_ended_any_ = end_all(shared().watched);
}

Result<bool> Guardian::renew() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC)) return fail_errno("guardian");
  Fd reads(ends[0]), writes(ends[1]), weir(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  uint64_t number = shared().in_charge + 1;
  fflush(nullptr);
  pid_t pid = fork();
  if (pid < 0) return fail_errno("guardian");
  if (pid == 0) {
    life_ = Fd(), writes = Fd();
    guard(number, reads.get(), weir.get());
    return true;
  }
  // From here on it is the new one, whatever happens to us.
  __atomic_store_n(&shared().in_charge, number, __ATOMIC_SEQ_CST);
  __atomic_store_n(&shared().has_copy, 0, __ATOMIC_SEQ_CST);
  life_ = std::move(writes);
  pid_ = pid;
  process_ = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  return false;
}

void Guardian::watch(pid_t pid) {
  std::span<Watched> all = shared().watched;
  auto free = std::ranges::find(all, 0, &Watched::pid);
  if (free == all.end()) return;
  free->start = start_of(pid);
  __atomic_store_n(&free->pid, pid, __ATOMIC_SEQ_CST);  // (we may be killed here)
}

void Guardian::forget(pid_t pid) {
  for (Watched& w : shared().watched)
    if (w.pid == pid) __atomic_store_n(&w.pid, 0, __ATOMIC_SEQ_CST);
}

void Guardian::expect_copy() { __atomic_store_n(&shared().has_copy, 1, __ATOMIC_SEQ_CST); }

// (It is killed, as others may hold the pipe. Where it has gone already and was waited for, its number may be another's.)
void Guardian::dismiss() {
  if (!shared_) return;
  __atomic_store_n(&shared().in_charge, 0, __ATOMIC_SEQ_CST);
  life_ = Fd();
  if (process_) syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0);
  if (pid_) waitpid(std::exchange(pid_, 0), nullptr, 0);
  process_ = Fd();
}

}  // namespace weir::engine
