// All threads of a process, held by ptrace: to change the process while none of them runs.
#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

#include "base/result.h"

namespace weir::process {

// Why weir cannot attach to the process, and what to do about it; no error: nothing is known to be in the way.
Result<> may_attach(pid_t pid);

// Does it execute a 64-bit program?
bool is_64_bit(pid_t pid);

// A word of /proc/PID/status, as it stands there; empty: there is none.
std::string status_word(pid_t pid, const char* name);
pid_t parent_of(pid_t pid);

// Has the thread ended, waited for or not?
bool has_ended(pid_t tid);

// A stopped thread's call that has ended with EINTR though no signal has come, other than those of `ours`, is made again when it goes on.
void make_again(pid_t tid, uint64_t ours);

// Lets go of a thread that was seized and runs, at once or when it can be stopped. Who has called it calls the second one now and then.
void let_go(pid_t tid);
void let_go_of_late();
// It is still to be let go of: its stop is for these two to wait for, and for nobody else.
bool is_late(pid_t tid);
// The same for who waits for all at once, and has been told of this stop. False: the thread is none of those.
bool let_go_of_late(pid_t tid, int status);

class Threads {
 public:
  // `ours`: signals of Weir's, a set. Calls that these have interrupted are made again.
  explicit Threads(pid_t pid, uint64_t ours = 0) : pid_(pid), ours_(ours) {}
  Threads(Threads&&) = default;
  ~Threads();  // lets go of all

  // Stops all that run, those too that are created meanwhile. While it waits it calls `meanwhile`, every some ten microseconds, until
  // that says to give up: an error then, and the threads go on. Threads that end are forgotten. One that waits in the kernel, where it cannot
  // be stopped, may stay there if `may_stay` says so: it will stop before it executes another instruction.
  Result<> stop(const std::function<bool()>& meanwhile, const std::function<bool(pid_t)>& may_stay = {});
  // Sees to those that were let go on: signals are theirs.
  void look();
  // Lets one go on, to be stopped again later.
  void go_on(pid_t tid, int signal = 0);
  // All stand still, and are about to be changed: when this process is killed in the middle, the kernel ends them before one can run on.
  void end_with_us();
  std::vector<pid_t> tids() const;
  // The process has executed another program.
  bool executed() const { return executed_; }
  // One that can make system calls for us: better one that is in none.
  pid_t agent() const;

 private:
  struct Held {
    pid_t tid;
    bool stopped = false;
    bool stays = false;  // in the kernel
  };
  Result<bool> seize_new();
  void look(Held& thread);
  pid_t pid_;
  uint64_t ours_;
  std::vector<Held> held_;
  bool executed_ = false;
};

}  // namespace weir::process
