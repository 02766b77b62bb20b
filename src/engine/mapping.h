// Mapping: what a space has and a process has not, its threads map.
//
// Nobody but the process can change what it has mapped. So a request may be answered with a list of system calls; the thread makes them
// and asks again (rt::CalledRequest), and gets the rest of them, the next list, or its answer. Until then the other threads of its memory
// wait, as what they would be told may lead to what is not there yet. Where its own answer may do so, its request is put off until all is
// mapped. (Drawn in docs/design.md, "Requests".)
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/posted.h"
#include "engine/regions.h"
#include "engine/space.h"
#include "process/keeper.h"
#include "rt/abi.h"

namespace weir::engine {

// A process that has used up its descriptors is lent some. Returns its limit as it was.
std::optional<rlimit> lend_descriptors(pid_t pid);

// The memory of a process: what it has mapped of its space, and how it comes to the rest. Processes may share one (vfork).
class Memory {
 public:
  // A thread that is answered.
  struct Caller {
    pid_t pid;
    uint32_t slot;
    rt::ThreadBlock& block;
    Space& space;
    bool is_quiet;                 // it has a seccomp filter: any call may be its last one
    std::vector<rt::Call>& calls;  // that are to be made before what is new is mapped
  };

  size_t mapped = 0;               // pieces of the space: they are there, or a thread has been told to map them
  AppPc kernels_choice;            // near where the kernel maps what may be anywhere
  std::vector<bool> has_end = {};  // by slot: its parallel stack ends at a page that cannot be written to
  RegionFiles region_files = {};   // of the tool's regions

  // That of a child, which is forked now. (Its files of regions are the parent's until it has come: see copy_regions.)
  std::shared_ptr<Memory> copy() const;
  // The child has come: of regions that each process has its own of, it gets a copy, and is to map it.
  Result<> copy_regions(const Space& space);
  // Is there something of its own that is to be mapped?
  bool has_own_pieces() const { return !own_pieces_.empty(); }
  bool has_caller() const { return caller_; }
  // May the thread be answered? If not, as another one calls, it waits.
  bool admits(uint32_t slot);
  // Has the thread make calls, with its answer. Are there any?
  bool send(const Caller& c);
  // This is what it asks when they are made.
  void put_off(const Posted& r) { put_off_ = r; }
  // The calls were made, or some. Is it to make the rest? (is_shared: do others use the space?) An error: it cannot go on.
  Result<bool> called(const Caller& c, const rt::CalledRequest& r, const std::function<bool()>& is_shared);
  // All are made: what was put off.
  std::optional<Posted> finish();
  // The threads are gone. Has one of them called?
  bool leave(std::span<const uint32_t> slots);
  // Who waited while a thread called.
  std::vector<uint32_t> take_waiting() { return std::exchange(waiting_, {}); }

 private:
  bool map_without(const Caller& c, CachePc base, const std::function<bool()>& is_shared);

  std::vector<Piece> own_pieces_;  // besides those of the space: to be mapped first
  uint32_t caller_ = 0;  // a slot
  size_t sent_ = 0;      // calls that it was told to make
  std::optional<Posted> put_off_;
  std::optional<rlimit> limit_;  // of its descriptors, while it is lent more
  std::vector<uint32_t> waiting_;
  process::Keeper keeper_;  // of our files, where its process may not open them itself
};

}  // namespace weir::engine
