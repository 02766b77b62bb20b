// When Weir is killed, the processes that it serves must not be left waiting for it: a small process watches, and ends them.
#pragma once

#include <sys/types.h>

#include <span>

#include "base/fd.h"
#include "base/result.h"

namespace weir::engine {

class Guardian {
 public:
  // Forks it. The guardian holds no descriptor of ours but the one that tells it that we are gone.
  static Result<Guardian> start();
  Guardian() = default;

  void watch(pid_t pid);
  void forget(pid_t pid);
  // All is well: it goes, and ends nobody.
  void dismiss();

 private:
  std::span<pid_t> pids() const { return {reinterpret_cast<pid_t*>(shared_.data()), shared_.size() / sizeof(pid_t)}; }
  Mapping shared_;
  Fd life_;  // the writing end of a pipe: the kernel closes it when the last of us has gone
};

}  // namespace weir::engine
