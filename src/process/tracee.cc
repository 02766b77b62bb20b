#include "process/tracee.h"

#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <vector>

#include "process/memory.h"

namespace weir::process {

Result<int> wait_stop(pid_t pid) {
  siginfo_t info;
  int status;
  if (waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED | WEXITED | WNOWAIT | __WALL))
    return fail_errno("process {}: cannot be waited for", pid);
  if (info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED)
    return fail("process {} has ended", pid);
  if (waitpid(pid, &status, __WALL | WUNTRACED) != pid) return fail_errno("process {}: cannot be waited for", pid);
  return status;
}

Result<user_regs_struct> Tracee::registers() const {
  user_regs_struct regs;
  if (ptrace(PTRACE_GETREGS, pid_, 0, &regs)) return fail_errno("process {}: cannot read registers", pid_);
  return regs;
}

Result<> Tracee::set_registers(const user_regs_struct& regs) const {
  if (ptrace(PTRACE_SETREGS, pid_, 0, &regs)) return fail_errno("process {}: cannot set registers", pid_);
  return {};
}

Result<uint64_t> Tracee::block_signals() const {
  uint64_t mask = 0, all = ~uint64_t{0};
  if (ptrace(PTRACE_GETSIGMASK, pid_, sizeof mask, &mask) || ptrace(PTRACE_SETSIGMASK, pid_, sizeof all, &all))
    return fail_errno("process {}: cannot block signals", pid_);
  return mask;
}

Result<> Tracee::detach(int signal) const {
  if (ptrace(PTRACE_DETACH, pid_, 0, signal)) return fail_errno("process {}: cannot detach", pid_);
  return {};
}

Result<> Tracee::write(uint64_t address, std::span<const std::byte> bytes) const {
  iovec local{const_cast<std::byte*>(bytes.data()), bytes.size()}, remote{reinterpret_cast<void*>(address), bytes.size()};
  if (process_vm_writev(pid_, &local, 1, &remote, 1, 0) != static_cast<ssize_t>(bytes.size()))
    return fail_errno("process {}: cannot write memory", pid_);
  return {};
}

Result<RemoteSyscalls> RemoteSyscalls::begin(const Tracee& tracee, uint64_t at) {
  TRY(auto regs, tracee.registers());
  TRY(uint64_t mask, tracee.block_signals());
  errno = 0;
  long code = ptrace(PTRACE_PEEKTEXT, tracee.pid(), at, 0);
  if (errno) return fail_errno("process {}: cannot read code", tracee.pid());
  constexpr uint64_t syscall_int3 = 0xcc050f;
  uint64_t patched = (static_cast<uint64_t>(code) & ~uint64_t{0xffffff}) | syscall_int3;
  if (ptrace(PTRACE_POKETEXT, tracee.pid(), at, patched)) return fail_errno("process {}: cannot write code", tracee.pid());
  return RemoteSyscalls(tracee, regs, at, static_cast<uint64_t>(code), mask);
}

Result<> RemoteSyscalls::end() {
  if (std::exchange(ended_, true)) return {};
  if (ptrace(PTRACE_POKETEXT, tracee_.pid(), at_, code_))
    return fail_errno("process {}: cannot restore code", tracee_.pid());
  if (ptrace(PTRACE_SETSIGMASK, tracee_.pid(), sizeof mask_, &mask_))
    return fail_errno("process {}: cannot restore the signal mask", tracee_.pid());
  return tracee_.set_registers(saved_);
}

Result<uint64_t> RemoteSyscalls::call(const char* name, long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                                      uint64_t f) {
  user_regs_struct regs = saved_;
  regs.orig_rax = ~0ull;  // no system call is under way that the kernel could restart
  regs.rip = at_;
  regs.rax = static_cast<uint64_t>(nr);
  regs.rdi = a, regs.rsi = b, regs.rdx = c, regs.r10 = d, regs.r8 = e, regs.r9 = f;
  TRY_VOID(tracee_.set_registers(regs));
  if (ptrace(PTRACE_CONT, tracee_.pid(), 0, 0)) return fail_errno("process {}: cannot continue", tracee_.pid());
  for (;;) {
    TRY(int status, wait_stop(tracee_.pid()));
    // Only a trap of our own counts. All signals are blocked but SIGSTOP: it takes effect when the tracee is let go.
    bool is_event = status >> 16;
    if (WSTOPSIG(status) == SIGTRAP && !is_event) break;
    if (ptrace(PTRACE_CONT, tracee_.pid(), 0, is_event ? 0 : WSTOPSIG(status)))
      return fail_errno("process {}: cannot continue", tracee_.pid());
  }
  TRY(user_regs_struct after, tracee_.registers());
  auto result = static_cast<int64_t>(after.rax);
  if (result < 0 && result > -4096) {
    errno = static_cast<int>(-result);
    return fail_errno("process {}: {}", tracee_.pid(), name);
  }
  return after.rax;
}

// The path is written over what is on top of the stack, which is there for sure, and that is put back.
Result<int> RemoteSyscalls::open(const std::string& path, int flags) {
  std::vector<std::byte> kept(path.size() + 1);
  if (read(tracee_.pid(), saved_.rsp, kept) != kept.size()) return fail("process {}: cannot read its stack", tracee_.pid());
  TRY_VOID(tracee_.write(saved_.rsp, std::as_bytes(std::span(path.c_str(), path.size() + 1))));
  auto fd = call("open", SYS_open, saved_.rsp, static_cast<uint64_t>(flags));
  TRY_VOID(tracee_.write(saved_.rsp, kept));
  if (!fd) return std::unexpected(fd.error());
  return static_cast<int>(*fd);
}

}  // namespace weir::process
