// A process opens Weir's memory through /proc/WEIR/fd. The kernel lets it only if it has our ids, and our capabilities: one that
// has dropped some is served by a keeper, a process with those descriptors and nothing else of ours that has dropped them, too.
//
// The keeper is that user's, who may read and write all that it has. So it is not a copy of Weir: it executes weir anew, with an empty
// environment, and its descriptors are opened again, to read only what that user may only read.
#pragma once

#include <sys/types.h>

#include <span>
#include <utility>
#include <vector>

#include "base/fd.h"

namespace weir::process {

// Who a process is to the kernel when it opens a file.
struct Identity {
  uid_t user = 0;
  gid_t group = 0;
  friend bool operator==(const Identity&, const Identity&) = default;
};

class Keeper {
 public:
  // What it holds, under the number that it has here.
  struct Loan {
    int file;
    bool is_writable = false;
  };
  // The word that says, in the place of a verb, that this process is to be one, and what it does then.
  static constexpr const char* verb = "--keeper";
  static int keep(int argc, char** argv);

  // Must the process ask another one than us?
  static bool is_needed(pid_t pid);
  // Is it our user all the same, who has only dropped privileges?
  static bool is_our_user(pid_t pid);
  // Can `pid`, who must ask another one, ask this one for these?
  bool serves(pid_t pid, std::span<const Loan> loans) const;
  // The process to be asked for descriptors by `pid`: this one, or a new one, which lives as long as the Keeper.
  Keeper(pid_t pid, std::span<const Loan> loans);
  Keeper() = default;
  Keeper(Keeper&& other) noexcept { *this = std::move(other); }
  Keeper& operator=(Keeper&& other) noexcept;
  ~Keeper() { dismiss(); }

  pid_t pid() const { return pid_; }
  // Its user may open what it holds: from the start, and until that is closed.
  void open_files();
  void close_files();

 private:
  bool begin(pid_t pid, std::span<const Loan> loans);
  void dismiss();

  struct Lent {
    Loan loan;
    Fd file;  // the same once more: the number may be another's later
  };
  pid_t pid_ = 0;
  Fd process_;               // it, where it is not us
  Identity who_;             // it is this one's
  std::vector<Lent> files_;  // that are its user's to open,
  bool is_open_ = false;     // … now
};

}  // namespace weir::process
