// A process or thread under ptrace: to run system calls in it, and to let go of it again.
//
// A tracee may die at any instant: that is an ordinary result (ESRCH in an Error), not a bug. All calls come from the one
// thread of Weir that traced it: the kernel ties the two together.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/address.h"
#include "base/result.h"

namespace weir::process {

// Waits until the thread stops, and returns its status. That it ended is an error, and is left for waitpid() to tell.
Result<int> wait_stop(pid_t pid);
// The same, for so long; none: it has not stopped by then.
Result<std::optional<int>> wait_stop(pid_t pid, std::chrono::milliseconds patience);

// Was the thread stopped in a system call that the kernel will begin again, or end with EINTR, when it goes on?
inline bool is_in_restart(const user_regs_struct& regs) {
  constexpr int64_t ERESTARTSYS = 512, ERESTART_RESTARTBLOCK = 516;
  auto result = static_cast<int64_t>(regs.rax);
  return static_cast<int64_t>(regs.orig_rax) >= 0 && result <= -ERESTARTSYS && result >= -ERESTART_RESTARTBLOCK;
}

class Tracee {
 public:
  explicit Tracee(pid_t pid) : pid_(pid) {}

  pid_t pid() const { return pid_; }
  Result<user_regs_struct> registers() const;
  Result<> set_registers(const user_regs_struct& regs) const;
  // All of them; returns what was blocked before.
  Result<uint64_t> block_signals() const;
  Result<> detach(int signal = 0) const;
  // Kills it, and waits for its end: it is a child of ours.
  void end() const;
  Result<> write(uint64_t address, std::span<const std::byte> bytes) const;

 private:
  pid_t pid_;
};

// Swaps zmm31 of a stopped thread, which is at `offset` of its extended state, and `value`.
Result<> exchange_zmm31(pid_t tid, uint32_t offset, std::span<uint8_t, 64> value);

// An address of the process that holds a `syscall` instruction: most often in the vDSO. 0: there is none.
uint64_t find_syscall(pid_t pid);

// A file that a tracee is to map, or anonymous memory, in the layout that the code for it reads.
struct FileMapping {
  uint64_t open_flags, address, size, protection, map_flags;
  char path[40];
};

// Has a tracee that is stopped in or behind execve open, map and close files, and stop again: one stop, where RemoteSyscalls has two
// a call. The code for it is at `page` meanwhile, a page of code.
Result<> map_files(const Tracee& tracee, uint64_t page, std::span<const FileMapping> files);

// Which system calls of a stopped thread go to a handler of its own (PR_SET_SYSCALL_USER_DISPATCH). None, where they do not, or the kernel does not tell
// (before Linux 6.4).
struct DispatchConfig {
  uint64_t mode, selector, begin, size;
};
std::optional<DispatchConfig> dispatch_of(pid_t tid);
void set_dispatch(pid_t tid, const DispatchConfig& config);

// Runs system calls in a stopped tracee, at an executable address that holds a `syscall` meanwhile. (No breakpoint, and no single
// step: the kernel would change the action of SIGTRAP where that is blocked or ignored.) The tracee's registers, code and signal mask
// are as before when it has ended, and a call that it was in is made again or ends as the kernel would have it.
class RemoteSyscalls {
 public:
  static Result<RemoteSyscalls> begin(const Tracee& tracee, uint64_t at);
  Result<> end();
  ~RemoteSyscalls() { (void)end(); }
  RemoteSyscalls(RemoteSyscalls&& o) noexcept
      : tracee_(o.tracee_),
        saved_(o.saved_),
        at_(o.at_),
        code_(o.code_),
        mask_(o.mask_),
        dispatch_(o.dispatch_),
        ended_(std::exchange(o.ended_, true)) {}

  // The value that the kernel returned, or an error that names the call.
  Result<uint64_t> call(const char* name, long nr, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0, uint64_t d = 0,
                        uint64_t e = 0, uint64_t f = 0);
  // open(2) in the tracee.
  Result<int> open(const std::string& path, int flags);
  // A descriptor of ours becomes one of the tracee's, whoever and wherever it is: through a pair of sockets that it makes, of which we
  // take one. (Linux 5.6)
  Result<int> receive(int file);

 private:
  RemoteSyscalls(const Tracee& t, const user_regs_struct& saved, uint64_t at, uint64_t code, uint64_t mask,
                 std::optional<DispatchConfig> dispatch)
      : tracee_(t), saved_(saved), at_(at), code_(code), mask_(mask), dispatch_(dispatch) {}
  Result<> stop_anew();
  Tracee tracee_;
  user_regs_struct saved_;
  uint64_t at_;
  uint64_t code_;                           // what is there otherwise
  uint64_t mask_;                           // the tracee's signals wait meanwhile
  std::optional<DispatchConfig> dispatch_;  // its calls are not dispatched meanwhile
  bool ended_ = false;
};

}  // namespace weir::process
