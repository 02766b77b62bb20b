// A process opens Weir's memory through /proc/WEIR/fd. The kernel lets it only if it has our ids, and our capabilities: one that
// has dropped some is served by a keeper, a copy of Weir with the same descriptors that has dropped them, too.
#pragma once

#include <sys/types.h>

namespace weir::engine {

class Keeper {
 public:
  // Must the process ask another one than us?
  static bool is_needed(pid_t pid);
  // The process to be asked for descriptors by `pid`: this one, or a new one, which lives as long as the Keeper.
  explicit Keeper(pid_t pid);
  Keeper() = default;
  Keeper(Keeper&& other) noexcept;
  Keeper& operator=(Keeper&& other) noexcept;
  ~Keeper() { dismiss(); }

  pid_t pid() const { return pid_; }
  // Shared memory is for our user's eyes only, and the process may have another.
  void lend(int file) const;
  void dismiss();

 private:
  pid_t pid_ = 0;
};

}  // namespace weir::engine
