// The table of system calls against the kernel: see call_trial.h.

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <set>

#include "call_trial.h"

namespace weir::rt {
namespace {

constexpr int names[] = {CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWNET};

void write_file(const char* name, const std::string& text) {
  int fd = open(name, O_WRONLY);
  [[maybe_unused]] ssize_t n = write(fd, text.data(), text.size());
  close(fd);
}

// A place of its own: an empty directory, and names and networks that nobody else sees. As an ordinary user: as root of a user namespace.
void settle(const char* directory) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (geteuid() != 0) {
    unsigned user = geteuid(), group = getegid();
    unshare(CLONE_NEWUSER);
    write_file("/proc/self/setgroups", "deny");
    write_file("/proc/self/uid_map", fmt::format("0 {} 1", user));
    write_file("/proc/self/gid_map", fmt::format("0 {} 1", group));
  }
  for (int name : names) unshare(name);
  mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  mount("none", directory, "tmpfs", 0, "size=16m");
  [[maybe_unused]] int failed = chdir(directory);
  rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
}

// Without a timeout some calls wait for ever.
void end_after(int seconds) {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL, event.sigev_signo = SIGKILL;
  timer_t timer;
  itimerspec end{{0, 0}, {seconds, 0}};
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &end, nullptr)) abort();
}

class Kernel : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/call_kernel_XXXXXX";
    directory_ = mkdtemp(name);
    report_ =
        static_cast<Report*>(mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  }
  void TearDown() override {
    rmdir(directory_.c_str());
    munmap(report_, sizeof(Report));
    std::string text;
    for (const auto& [why, which] : not_run_) text += fmt::format("\n  {}: {}", why, which);
    fmt::print("{} calls in {} cases were tried; {} told more than what is known{}{}\n", calls_.size(), tried_, unknown_,
               not_run_.empty() ? "" : "; not possible here:", text);
  }

  const Report& run(const Case& c, const Layout& layout) {
    memset(static_cast<void*>(report_), 0, sizeof *report_);
    fflush(nullptr);
    pid_t child = fork();
    if (!child) {
      settle(directory_.c_str());
      Trial trial(layout, *report_);
      end_after(layout.nulled < 0 ? 20 : 1);
      c.run(trial);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!report_->called)
      snprintf(report_->why, sizeof report_->why, "it ended before the call, with status %x", unsigned(status));
    return *report_;
  }

  void try_all(const std::vector<Case>& cases) {
    for (const Case& c : cases) try_case(c);
    EXPECT_GT(tried_, int(cases.size()) / 2);
  }
  void try_case(const Case& c);
  void compare_bytes(const Case& c, const Report& one, const Report& other);
  void move_buffers(const Case& c, const Report& good, Layout layout);

  std::string directory_;
  Report* report_ = nullptr;
  std::set<int> calls_;
  int tried_ = 0, unknown_ = 0;
  std::map<std::string, std::string> not_run_;
};

bool is_not_for_us(int64_t result) {
  return result == -ENOSYS || result == -EBADF || result == -EPERM || result == -EOPNOTSUPP || result == -EACCES;
}

void Kernel::compare_bytes(const Case& c, const Report& one, const Report& other) {
  for (int k = 0; k < one.buffers; k++) {
    const auto &a = one.of[k], &b = other.of[k];
    int64_t begin = int64_t(room) - a.end;
    std::string untold, unchanged;
    for (uint64_t i = 0; i < room; i++) {
      if (a.excused[i] || b.excused[i]) continue;
      if ((a.changed[i] && !a.told[i]) || (b.changed[i] && !b.told[i])) untold += fmt::format(" {}", int64_t(i) - begin);
      if (a.is_patterned && !a.has_holes && a.told[i] && b.told[i] && !a.changed[i] && !b.changed[i])
        unchanged += fmt::format(" {}", int64_t(i) - begin);
    }
    EXPECT_EQ(untold, "") << c.what << ": buffer " << k << ": written, not told";
    EXPECT_EQ(unchanged, "") << c.what << ": buffer " << k << ": told, not written";
  }
}

void Kernel::move_buffers(const Case& c, const Report& good, Layout layout) {
  auto is_fault = [](const Report& r) {
    return r.finished && int32_t(r.result) == -EFAULT;
  };  // (modify_ldt's errors have 32 bits)
  auto failed = [&](const Report& r) { return is_fault(r) || (r.finished && r.result >= 0 && r.result < good.result); };
  for (int k = 0; k < good.buffers; k++) {
    if (good.of[k].end && !good.of[k].may_fault_late) {
      layout.moved = k;
      const Report& r = run(c, layout);
      EXPECT_TRUE(r.crosses) << c.what << ": buffer " << k << " is too high";
      EXPECT_TRUE(failed(r)) << c.what << ": buffer " << k << " is too high: the call ends with " << r.result << " "
                             << r.why;
      layout.moved = -1;
    }
    if (good.of[k].null_is_other || good.of[k].may_fault_late) continue;
    layout.nulled = k;
    const Report& r = run(c, layout);
    EXPECT_TRUE(r.crosses ? failed(r) : !is_fault(r))
        << c.what << ": buffer " << k << " is null: the call ends with " << r.result << " " << r.why;
    layout.nulled = -1;
  }
}

void Kernel::try_case(const Case& c) {
  Layout layout;
  Report probe = run(c, layout);
  bool is_missing = is_not_for_us(probe.result) || (c.may_be_missing && probe.result == -EINVAL);
  if (!probe.called || (is_missing && probe.result != c.result)) {
    not_run_[probe.called ? strerror(int(-probe.result)) : probe.why] += std::string(c.what) + ", ";
    return;
  }
  for (int k = 0; k < probe.buffers; k++) layout.ends[k] = probe.of[k].end;
  auto good = std::make_unique<Report>(run(c, layout));
  layout.pattern = 0xa5;
  auto other = std::make_unique<Report>(run(c, layout));
  for (const Report* r : {good.get(), other.get()}) {
    ASSERT_TRUE(r->finished) << c.what << ": it does not end";
    EXPECT_FALSE(r->crosses) << c.what;
    if (c.result) EXPECT_EQ(r->result, c.result) << c.what;
    else EXPECT_GE(r->result, 0) << c.what << ": " << strerror(int(-r->result));
  }
  calls_.insert(c.number), tried_++, unknown_ += good->is_unknown;
  compare_bytes(c, *good, *other);
  move_buffers(c, *good, layout);
}

struct CallLine {
  int number;
  const char *name, *parameters;
  bool has_effects;
};
constexpr CallLine lines[] = {
#define CALL(number, name, parameters, ...) {number, #name, parameters, sizeof #__VA_ARGS__ > 1},
#include "rt/call_effects.inc"
#undef CALL
};

// Why a call with effects has no case.
const std::map<std::string, const char*> not_tried = {
    {"mmap", "tells mappings: call_effects_test"},
    {"mprotect", "tells mappings"},
    {"munmap", "tells mappings: call_effects_test"},
    {"brk", "tells mappings"},
    {"mremap", "tells mappings: call_effects_test"},
    {"madvise", "tells mappings"},
    {"shmat", "tells mappings"},
    {"shmdt", "tells mappings"},
    {"remap_file_pages", "tells mappings"},
    {"pkey_mprotect", "tells mappings"},
    {"map_shadow_stack", "tells mappings"},
    {"rt_sigreturn", "reads the frame of a signal, and tells that it is unknown"},
    {"restart_syscall", "is made by the kernel, and tells that it is unknown"},
    {"uretprobe", "is for the kernel's trampolines, and tells that it is unknown"},
    {"uprobe", "is for the kernel's trampolines, and tells that it is unknown"},
    {"rseq", "is used by the C library already: tells only what the kernel keeps"},
};

TEST(KernelCases, CoverTheTable) {
  std::set<int> tried;
  for (const auto& cases : {file_cases(), name_cases(), socket_cases(), process_cases(), shared_cases(), device_cases()})
    for (const Case& c : cases) tried.insert(c.number);
  for (const CallLine& l : lines) {
    if (!l.has_effects) continue;
    EXPECT_NE(tried.contains(l.number), not_tried.contains(l.name)) << l.name;
  }
}

// What is told to have no effects writes nothing, and fails with EFAULT for no address.
TEST_F(Kernel, WithoutEffects) {
  const std::set<std::string> ends_or_hurts = {"exit",    "exit_group", "kill", "tkill", "tgkill",
                                               "vhangup", "pause",      "fork", "vfork", "close_range"};
  static int number;
  for (const CallLine& l : lines) {
    if (l.has_effects || !*l.parameters || ends_or_hurts.contains(l.name)) continue;
    number = l.number;
    Case c{number, l.name, [](Trial& t) {
             uint64_t a = t.out(64);
             t.call(uint64_t(number), a, a, a, a, a, a);
           }};
    const Report& r = run(c, {});
    ASSERT_TRUE(r.finished) << l.name << r.why;
    EXPECT_NE(r.result, -EFAULT) << l.name;
    for (bool changed : r.of[0].changed) ASSERT_FALSE(changed) << l.name;
    calls_.insert(number), tried_++;
  }
}

TEST_F(Kernel, Files) { try_all(file_cases()); }
TEST_F(Kernel, Names) { try_all(name_cases()); }
TEST_F(Kernel, Sockets) { try_all(socket_cases()); }
TEST_F(Kernel, Processes) { try_all(process_cases()); }
TEST_F(Kernel, Shared) { try_all(shared_cases()); }
TEST_F(Kernel, Devices) { try_all(device_cases()); }

}  // namespace
}  // namespace weir::rt
