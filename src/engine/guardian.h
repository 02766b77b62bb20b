// When Weir is killed, the processes that it serves must not be left waiting for it, and what they counted must not be lost: the
// guardian, a copy of Weir, waits for that, ends them, and goes on as Weir would have.
//
// It is a copy of the moment when it was forked. What has changed since is in shared memory: what tools publish (base/published.h),
// the thread blocks, and the roster, which says whose they are. When more than that changes, the guardian is renewed.
#pragma once

#include <sys/types.h>

#include <span>

#include "base/fd.h"
#include "base/result.h"

namespace weir::engine {

class Guardian {
 public:
  // Who has a thread block.
  struct Occupant {
    uint64_t serial;  // no two are the same, and later ones are larger; 0: nobody
    uint64_t space;   // see Space::id
    uint32_t pid, tid, parent;
    int64_t started;
  };

  static Result<Guardian> create();
  Guardian() = default;

  // Forks one, in place of the one before. Returns true in the guardian, when Weir was killed and those that it watched have ended.
  Result<bool> renew();
  bool has_ended_any() const { return has_ended_any_; }
  bool is(pid_t pid) const { return pid == pid_; }
  void watch(pid_t pid);
  void forget(pid_t pid);
  // By slot.
  std::span<Occupant> roster() const;
  // A copy of us, which is about to be made, goes on when we end.
  void expect_copy();
  // All is well: it goes, and ends nobody.
  void dismiss();

 private:
  struct Shared;
  Shared& shared() const { return *reinterpret_cast<Shared*>(shared_.data()); }
  void guard(uint64_t number, int life, int weir);

  Mapping shared_;
  Fd life_;  // the writing end of a pipe: the kernel closes it when the last of us has gone
  pid_t pid_ = 0;
  Fd process_;  // the guardian
  bool has_ended_any_ = false;
};

}  // namespace weir::engine
