// A process or thread under ptrace: to run system calls in it, and to let go of it again.
//
// A tracee may die at any instant: that is an ordinary result (ESRCH in an Error), not a bug. All calls come from the one
// thread of Weir that traced it: the kernel ties the two together.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <span>
#include <string>
#include <utility>

#include "base/address.h"
#include "base/result.h"

namespace weir::process {

// Waits until the thread stops, and returns its status. That it ended is an error, and is left for waitpid() to tell.
Result<int> wait_stop(pid_t pid);

class Tracee {
 public:
  explicit Tracee(pid_t pid) : pid_(pid) {}

  pid_t pid() const { return pid_; }
  Result<user_regs_struct> registers() const;
  Result<> set_registers(const user_regs_struct& regs) const;
  // All of them; returns what was blocked before.
  Result<uint64_t> block_signals() const;
  Result<> detach(int signal = 0) const;
  Result<> write(uint64_t address, std::span<const std::byte> bytes) const;

 private:
  pid_t pid_;
};

// Runs system calls in a stopped tracee, at an executable address that holds a `syscall; int3` meanwhile. The tracee's
// registers, code and signal mask are as before when it has ended.
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
        ended_(std::exchange(o.ended_, true)) {}

  // The value that the kernel returned, or an error that names the call.
  Result<uint64_t> call(const char* name, long nr, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0, uint64_t d = 0,
                        uint64_t e = 0, uint64_t f = 0);
  // open(2) in the tracee.
  Result<int> open(const std::string& path, int flags);

 private:
  RemoteSyscalls(const Tracee& t, const user_regs_struct& saved, uint64_t at, uint64_t code, uint64_t mask)
      : tracee_(t), saved_(saved), at_(at), code_(code), mask_(mask) {}
  Tracee tracee_;
  user_regs_struct saved_;
  uint64_t at_;
  uint64_t code_;  // what is there otherwise
  uint64_t mask_;  // the tracee's signals wait meanwhile
  bool ended_ = false;
};

}  // namespace weir::process
