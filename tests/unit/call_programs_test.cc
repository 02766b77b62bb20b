// The table of system calls against what real programs do: all of a program's memory that can be written is compared before and after each
// of its system calls, and what has changed must have been told.

#include <asm/unistd_64.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "rt/call_effects.h"

namespace weir::rt {
namespace {

pid_t traced;
bool read_traced(const void* from, void* to, uint64_t size) {
  iovec here{to, size}, there{const_cast<void*>(from), size};
  return process_vm_readv(traced, &here, 1, &there, 1, 0) == ssize_t(size);
}

// By begin.
using Memory = std::map<uint64_t, std::vector<uint8_t>>;
Memory writable_memory() {
  Memory memory;
  std::ifstream maps(fmt::format("/proc/{}/maps", traced));
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    char rights[5] = "";
    if (sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, rights) != 3 || rights[1] != 'w' || rights[0] != 'r') continue;
    std::vector<uint8_t> bytes(end - begin);
    if (read_traced(reinterpret_cast<void*>(begin), bytes.data(), bytes.size())) memory[begin] = std::move(bytes);
  }
  return memory;
}

struct Range {
  uint64_t begin, end;
};
bool is_in(const std::vector<Range>& ranges, uint64_t at) {
  for (const Range& r : ranges)
    if (at >= r.begin && at < r.end) return true;
  return false;
}

// What has changed and is in none of the ranges.
std::string untold(const Memory& before, const Memory& after, const std::vector<Range>& told) {
  for (const auto& [begin, bytes] : after) {
    auto old = before.find(begin);
    if (old == before.end() || old->second.size() != bytes.size() || old->second == bytes) continue;
    for (size_t i = 0; i < bytes.size(); i++)
      if (bytes[i] != old->second[i] && !is_in(told, begin + i)) return fmt::format("{:x}", begin + i);
  }
  return "";
}

class Programs : public testing::Test {
 protected:
  // Stops in front of a call, and behind it.
  bool step() {
    for (int signal = 0;;) {
      ptrace(PTRACE_SYSCALL, traced, 0, signal);
      if (waitpid(traced, &status_, 0) != traced || !WIFSTOPPED(status_)) return false;
      if (WSTOPSIG(status_) == (SIGTRAP | 0x80)) return true;
      signal = WSTOPSIG(status_) == SIGTRAP ? 0 : WSTOPSIG(status_);
    }
  }

  void one_call() {
    user_regs_struct r;
    ptrace(PTRACE_GETREGS, traced, 0, &r);
    SystemCall call{r.orig_rax, {r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9}};
    for_each_effect(call, read_traced, [](const Effect&) {});
    Memory before = writable_memory();
    if (!step()) return;
    ptrace(PTRACE_GETREGS, traced, 0, &r);
    std::vector<Range> told = kept_;
    for_each_effect(call, int64_t(r.rax), read_traced, [&](const Effect& e) {
      told.push_back({e.begin, e.begin + e.size});
      if (e.use == Use::Later) kept_.push_back(told.back());
    });
    calls_++, numbers_.insert(call.number);
    if (is_other_memory(call, int64_t(r.rax))) return;
    EXPECT_EQ(untold(before, writable_memory(), told), "")
        << "call " << call.number << " with " << std::hex << call.arguments[0] << ", " << call.arguments[1] << ", "
        << call.arguments[2];
  }

  // After it another program is there, or a child has run in the same memory.
  static bool is_other_memory(const SystemCall& call, int64_t result) {
    return (call.number == __NR_execve && !result) || call.number == __NR_vfork ||
           (call.number == __NR_clone && (call.arguments[0] & CLONE_VM)) || call.number == __NR_clone3;
  }

  void run(std::vector<const char*> argv) {
    argv.push_back(nullptr);
    traced = fork();
    if (!traced) {
      int null = open("/dev/null", O_RDWR);
      dup2(null, 0), dup2(null, 1), dup2(null, 2);
      ptrace(PTRACE_TRACEME, 0, 0, 0);
      raise(SIGSTOP);
      execvp(argv[0], const_cast<char**>(argv.data()));
      _exit(127);
    }
    waitpid(traced, &status_, 0);
    ptrace(PTRACE_SETOPTIONS, traced, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    kept_.clear(), numbers_.clear();
    calls_ = 0;
    while (step()) one_call();
    ASSERT_TRUE(WIFEXITED(status_)) << argv[0];
    ASSERT_EQ(WEXITSTATUS(status_), 0) << argv[0];
    EXPECT_GT(calls_, 20) << argv[0];
    fmt::print("{}: {} calls, {} of them different\n", argv[0], calls_, numbers_.size());
  }

  int status_ = 0, calls_ = 0;
  std::set<uint64_t> numbers_;
  std::vector<Range> kept_;
};

TEST_F(Programs, List) { run({"ls", "-lR", "/sys/class/net", "/proc/self/"}); }
TEST_F(Programs, Shell) {
  run({"sh", "-c",
       "cd /; umask; trap : USR1; kill -USR1 $$; read x < /etc/passwd; echo $(echo one; pwd) | cat; wait; exec true"});
}
TEST_F(Programs, Sort) { run({"sort", "-u", "/etc/group", "/etc/passwd"}); }
TEST_F(Programs, Find) { run({"find", "/etc/apt", "-newer", "/etc/passwd", "-o", "-size", "+1"}); }
TEST_F(Programs, Copy) { run({"dd", "if=/dev/zero", "of=/dev/null", "bs=3000", "count=9"}); }
TEST_F(Programs, Python) {
  run({"python3", "-I", "-S", "-c",
       "import os, select, socket, time, fcntl, signal, resource\n"
       "a, b = socket.socketpair(); b.send(b'x' * 99); a.recv(10); a.recv_into(bytearray(50)); b.sendmsg([b'abc', b'de']); "
       "a.recvmsg(200, 64)\n"
       "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); s.getsockname(); s.getsockopt(1, 7); s.setsockopt(1, 2, "
       "1)\n"
       "c = socket.create_connection(s.getsockname()); d, who = s.accept(); d.send(b'hello'); c.recv(3); c.getpeername(); "
       "c.close()\n"
       "u = socket.socket(2, 2); u.bind(('127.0.0.1', 0)); u.sendto(b'1234', u.getsockname()); u.recvfrom(2)\n"
       "r, w = os.pipe(); os.write(w, b'abc'); select.select([r], [w], [], 1)\n"
       "p = select.poll(); p.register(r); p.poll(0); e = select.epoll(); e.register(r); e.poll(0)\n"
       "os.readv(r, [bytearray(1), bytearray(5)]); time.sleep(0.001); os.times(); os.getgroups(); os.getresuid(); "
       "os.uname(); os.sysconf('SC_NPROCESSORS_ONLN')\n"
       "os.sched_getaffinity(0); os.getrandom(99); os.statvfs('/'); os.stat('/'); os.listdir('/'); os.getcwd(); "
       "resource.getrusage(0)\n"
       "resource.getrlimit(3); signal.setitimer(signal.ITIMER_PROF, 9); signal.getitimer(signal.ITIMER_PROF); "
       "signal.sigpending()\n"
       "f = os.open('/tmp', os.O_TMPFILE | os.O_RDWR); os.pwritev(f, [b'ab', b'cde'], 3); os.preadv(f, [bytearray(3), "
       "bytearray(9)], 1)\n"
       "os.sendfile(w, f, 1, 4); fcntl.lockf(f, fcntl.LOCK_EX); fcntl.ioctl(r, 0x541b, bytearray(4)); "
       "os.readlink('/proc/self/exe')\n"
       "q = os.fork()\n"
       "if not q: os._exit(3)\n"
       "os.waitid(os.P_PID, q, os.WEXITED | os.WNOWAIT); os.wait4(q, 0)\n"});
}

}  // namespace
}  // namespace weir::rt
