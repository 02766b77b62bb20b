// Stopping a process, thread by thread. A stop that we ask for comes inside the kernel's handling of signals, where a system call that it
// interrupted is still to be begun again or to end with EINTR: the kernel decides when the thread goes on. So the thread's
// registers can be changed meanwhile as if nothing had happened.

#include "process/threads.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/fd.h"
#include "process/memory.h"
#include "process/tracee.h"

namespace weir::process {

std::string status_word(pid_t pid, const char* name) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  std::string key = fmt::format("{}:", name);
  for (std::string word, line; file >> word; std::getline(file, line))
    if (word == key) return file >> word ? word : "";
  return "";
}

pid_t parent_of(pid_t pid) { return static_cast<pid_t>(strtol(status_word(pid, "PPid").c_str(), nullptr, 10)); }

bool has_ended(pid_t tid) {
  std::string state = status_word(tid, "State");
  return state.empty() || state == "Z" || state == "X";
}

namespace {

void pause_briefly() {
  timespec t{0, 20'000};
  nanosleep(&t, nullptr);
}

// What keeps root from it, and what to do.
std::string remedy_for_root() {
  std::ifstream scope_file("/proc/sys/kernel/yama/ptrace_scope");
  int scope = 0;
  if (scope_file >> scope && scope == 3)
    return "; the kernel forbids it until the next start: set kernel.yama.ptrace_scope to 1 in /etc/sysctl.conf, and "
           "reboot";
  constexpr uint64_t sys_ptrace = 1 << 19;
  if (!(strtoull(status_word(getpid(), "CapEff").c_str(), nullptr, 16) & sys_ptrace))
    return "; it lacks CAP_SYS_PTRACE: run weir outside of the container, or start that with --cap-add=SYS_PTRACE";
  return "; a sandbox or a security module protects the process: run weir outside of that";
}

std::unexpected<Error> refused(pid_t pid, int error) {
  struct stat st{};
  stat(fmt::format("/proc/{}", pid).c_str(), &st);
  if (error == EACCES) error = EPERM;
  if (error == EPERM && st.st_uid != geteuid() && geteuid() != 0)
    return fail("process {}: belongs to another user; run weir as that one", pid);
  if (error == EPERM && geteuid() != 0)
    return fail("process {}: ptrace is refused; allow it, e.g. sysctl kernel.yama.ptrace_scope=0, or run weir as root",
                pid);
  if (error == EPERM) return fail("process {}: ptrace is refused even to root{}", pid, remedy_for_root());
  return fail("process {}: {}", pid, strerror(error));
}

}  // namespace

bool is_64_bit(pid_t pid) {
  Fd fd(open(fmt::format("/proc/{}/exe", pid).c_str(), O_RDONLY | O_CLOEXEC));
  unsigned char head[20] = {};
  constexpr unsigned char class_64 = 2;
  return !fd || ::read(fd.get(), head, sizeof head) != sizeof head || head[4] == class_64;
}

Result<> may_attach(pid_t pid) {
  std::string state = status_word(pid, "State");
  if (state.empty()) return fail("process {}: there is none; ps lists those that are", pid);
  bool is_thread = status_word(pid, "Tgid") != std::to_string(pid);
  if (is_thread) return fail("process {}: is a thread of process {}; give that one", pid, status_word(pid, "Tgid"));
  bool leader_ended = state == "Z" || state == "X";
  if (leader_ended && status_word(pid, "Threads") == "1") return fail("process {}: has ended", pid);
  if (status_word(pid, "VmSize").empty() && !leader_ended)
    return fail("process {}: is a kernel thread; weir looks at programs", pid);
  if (std::string tracer = status_word(pid, "TracerPid"); tracer != "0" && !tracer.empty())
    return fail("process {}: is traced by process {} already; end that first", pid, tracer);
  if (std::string mode = status_word(pid, "Seccomp"); mode != "0" && !mode.empty())
    return fail("process {}: has a seccomp filter, which may forbid what weir does in it; start it with weir instead", pid);
  if (!is_64_bit(pid)) return fail("process {}: a 32-bit program; Weir runs 64-bit x86 programs", pid);
  std::error_code none;
  if (std::filesystem::equivalent(fmt::format("/proc/{}/exe", pid), "/proc/self/exe", none))
    return fail("process {}: is weir itself; give a process that it is not", pid);
  auto all = regions(pid);
  if (!all || all->empty()) return leader_ended ? Result<>{} : refused(pid, all ? EPERM : errno);
  if (std::ranges::any_of(*all, [](const Region& r) { return r.path.starts_with("/memfd:weir-"); }))
    return fail("process {}: runs under weir already; wait until that has ended, or end it", pid);
  return {};
}

// Some calls end with EINTR when their thread is stopped, though no signal has come. These can be made again: nothing has happened in them.
void make_again(pid_t tid, uint64_t ours) {
  constexpr int calls[] = {SYS_epoll_wait,    SYS_epoll_pwait, SYS_epoll_pwait2, SYS_rt_sigtimedwait, SYS_semop,
                           SYS_semtimedop,    SYS_accept,      SYS_accept4,      SYS_recvfrom,        SYS_recvmsg,
                           SYS_recvmmsg,      SYS_sendto,      SYS_sendmsg,      SYS_sendmmsg,        SYS_read,
                           SYS_readv,         SYS_write,       SYS_writev,       SYS_io_getevents,    SYS_io_pgetevents,
                           SYS_io_uring_enter};
  Tracee tracee(tid);
  auto regs = tracee.registers();
  if (!regs || static_cast<int64_t>(regs->rax) != -EINTR) return;
  if (std::ranges::find(calls, static_cast<int64_t>(regs->orig_rax)) == std::end(calls)) return;
  auto set = [&](const char* name) { return strtoull(status_word(tid, name).c_str(), nullptr, 16); };
  if ((set("SigPnd") | set("ShdPnd")) & ~set("SigBlk") & ~ours) return;  // so that one has
  constexpr uint64_t none = ~uint64_t{0}, syscall_size = 2;
  regs->rax = regs->orig_rax;
  regs->orig_rax = none;
  regs->rip -= syscall_size;
  (void)tracee.set_registers(*regs);
}

// Only a thread that stands still can be let go of. One that does not stop now (it waits for a vfork) is let go of when it does.
namespace {
std::vector<pid_t> late;

// A thread that ends while it is traced is there, and its process with it, until its tracer has waited for it. How a child of ours has ended
// is left for others to ask.
void bury(pid_t tid) {
  bool is_child = status_word(tid, "Tgid") == std::to_string(tid) && status_word(tid, "PPid") == std::to_string(getpid());
  if (!is_child && waitpid(tid, nullptr, WNOHANG | __WALL) == 0) late.push_back(tid);  // (it is just about to)
}
}  // namespace

namespace {
void let_go(pid_t tid, std::chrono::milliseconds patience) {
  if (ptrace(PTRACE_INTERRUPT, tid, 0, 0)) return bury(tid);
  auto status = wait_stop(tid, patience);
  if (!status) return bury(tid);
  if (!*status) return late.push_back(tid);
  ptrace(PTRACE_DETACH, tid, 0, **status >> 16 ? 0 : WSTOPSIG(**status));
}
}  // namespace

void let_go(pid_t tid) { let_go(tid, std::chrono::milliseconds(20)); }

void let_go_of_late() {
  for (pid_t tid : std::exchange(late, {})) let_go(tid);
}

bool is_late(pid_t tid) { return std::ranges::find(late, tid) != late.end(); }

bool let_go_of_late(pid_t tid, int status) {
  if (!std::erase(late, tid)) return false;
  ptrace(PTRACE_DETACH, tid, 0, status >> 16 ? 0 : WSTOPSIG(status));
  return true;
}

Threads::~Threads() {
  for (const Held& t : held_)
    if (!t.stopped || ptrace(PTRACE_DETACH, t.tid, 0, 0)) let_go(t.tid, std::chrono::milliseconds(t.stays ? 0 : 20));
}

void Threads::end_with_us() {
  for (const Held& t : held_) ptrace(PTRACE_SETOPTIONS, t.tid, 0, PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL);
}

Result<bool> Threads::seize_new() {
  bool any = false;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid_), none)) {
    pid_t tid = static_cast<pid_t>(atoi(entry.path().filename().c_str()));
    if (std::ranges::find(held_, tid, &Held::tid) != held_.end()) continue;
    bool is_held = status_word(tid, "TracerPid") == std::to_string(getpid());  // (for an exec)
    if (is_held && has_ended(tid)) continue;  // our child, whose end is told to waitpid(); others are buried
    if (!is_held && ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACEEXEC)) {
      int error = errno;
      if (error == ESRCH || has_ended(tid)) continue;
      return refused(pid_, error);
    }
    ptrace(PTRACE_INTERRUPT, tid, 0, 0);
    held_.push_back({tid});
    any = true;
  }
  return any;
}

// What the kernel has to tell of it. (A signal is delivered first, and the stop comes behind it.) How a child of ours has ended is left for
// waitpid() to tell.
void Threads::look(Held& thread) {
  int status = 0;
  pid_t tid = thread.tid;
  if (tid == pid_ && parent_of(pid_) == getpid()) {
    auto stop = wait_stop(pid_, std::chrono::milliseconds(0));
    if (!stop) tid = -1;
    else if (!*stop) tid = 0;
    else status = **stop;
  } else {
    tid = waitpid(tid, &status, WNOHANG | __WALL);
  }
  if (tid == 0) {
    // The first thread has ended before others: nothing is told of that until those have.
    if (thread.tid == pid_ && has_ended(pid_)) bury(std::exchange(thread.tid, 0));
    return;
  }
  if (tid < 0 || !WIFSTOPPED(status)) {
    thread.tid = 0;
    return;
  }
  int event = status >> 16;
  if (event == PTRACE_EVENT_EXEC) {  // the stop that we have asked for comes behind it
    executed_ = true;
    ptrace(PTRACE_INTERRUPT, tid, 0, 0);
    ptrace(PTRACE_CONT, tid, 0, 0);
    return;
  }
  if (event) thread.stopped = true;
  if (event == PTRACE_EVENT_STOP) make_again(tid, ours_);
  else ptrace(PTRACE_CONT, tid, 0, WSTOPSIG(status));
}

void Threads::look() {
  for (Held& t : held_)
    if (!t.stopped) look(t);
  std::erase_if(held_, [](const Held& t) { return t.tid == 0; });
}

Result<> Threads::stop(const std::function<bool()>& meanwhile, const std::function<bool(pid_t)>& may_stay) {
  for (Held& t : held_)
    if (!t.stopped) ptrace(PTRACE_INTERRUPT, t.tid, 0, 0);
  auto is_still = [&](Held& t) {
    t.stays = !t.stopped && may_stay && may_stay(t.tid);
    return t.stopped || t.stays;
  };
  for (;;) {
    auto any = seize_new();
    look();
    if (!any) return std::unexpected(any.error());
    if (!*any && std::ranges::all_of(held_, is_still))
      return held_.empty() ? fail("process {}: has ended", pid_) : Result<>{};
    if (*any) continue;
    if (!meanwhile()) {
      for (pid_t tid : tids()) go_on(tid);
      return fail("process {}: a thread of it does not stop", pid_);
    }
    pause_briefly();
  }
}

void Threads::go_on(pid_t tid, int signal) {
  auto t = std::ranges::find(held_, tid, &Held::tid);
  if (t == held_.end() || !t->stopped) return;
  t->stopped = false;
  ptrace(PTRACE_CONT, tid, 0, signal);
}

std::vector<pid_t> Threads::tids() const {
  std::vector<pid_t> result;
  for (const Held& t : held_) result.push_back(t.tid);
  return result;
}

pid_t Threads::agent() const {
  for (const Held& t : held_)
    if (auto regs = Tracee(t.tid).registers(); regs && !is_in_restart(*regs)) return t.tid;
  return held_.front().tid;
}

}  // namespace weir::process
