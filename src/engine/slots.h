// Slots: the blocks of threads, in one shared file, and who has which.
//
// Free → Reserved (reserve) → Running (run) → Ending (end_thread) → Free; docs/design.md has a drawing, under "Slots".
// A slot is reserved for a child before that begins. Slot 0 is nobody's: it holds the control block.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/address.h"
#include "base/flat_map.h"
#include "base/shared_memory.h"
#include "instrument/tool.h"
#include "rt/hooks.h"

namespace weir::engine {

class Memory;
class Space;

enum class SlotState : uint8_t { Free, Reserved, Running, Ending };

struct Slot {
  SlotState state = SlotState::Free;
  pid_t pid = 0, tid = 0;               // Reserved: of the thread that asked
  uint64_t clone_flags = 0;             // Reserved
  std::shared_ptr<Space> space = {};    // Reserved: of the process that asked, which may be gone by the time
  std::shared_ptr<Memory> memory = {};  // … and what the memory of the child begins with, if it is its own
  uint64_t seen = 0;                    // Running: the epoch of its space when it last went on in live code
  FlatMap<uint32_t> faults = {};        // Running: numbers of its rt::FaultRecords,
  uint32_t fault_records = 0;           // … and how many there are
  pid_t child = 0;                      // Running: of vfork, its last one, which it may be waiting for
  std::optional<instrument::Version> wanted = {};  // Running: the version that it is to go on in: see versions.cc

  bool is_reserved() const { return state == SlotState::Reserved; }
  bool is_running() const { return state == SlotState::Running; }
  // For a thread of the process that asked; for one that has its memory.
  bool is_thread() const { return clone_flags & CLONE_THREAD; }
  bool shares_memory() const { return clone_flags & CLONE_VM; }
};

class Slots {
 public:
  // Where the target has the block.
  static constexpr uint64_t address(uint32_t slot) { return rt::blocks_base + slot * rt::block_stride; }

  // `doors`, and the tool's part of the runtime: for those who get a block.
  static Result<Slots> create(const rt::RuntimeHeader& doors, const rt::ToolEntry& tool);

  // As many as were ever used; the first is nobody's.
  size_t size() const { return slots_.size(); }
  Slot& operator[](size_t slot) { return slots_[slot]; }
  const Slot& operator[](size_t slot) const { return slots_[slot]; }
  auto begin() { return slots_.begin(); }
  auto end() { return slots_.end(); }
  auto begin() const { return slots_.begin(); }
  auto end() const { return slots_.end(); }
  // That the thread has; 0: none.
  uint32_t of_thread(pid_t tid) const;

  const SharedMemory& memory() const { return memory_; }
  rt::ThreadBlock* block(uint32_t slot) const { return memory_.as<rt::ThreadBlock>(slot * rt::block_stride); }
  rt::ControlBlock* control() const { return memory_.as<rt::ControlBlock>(); }
  // Of the memory of a process: as many as it has room for.
  size_t mapped_size() const { return limit_ * rt::block_stride; }
  void set_limit(uint32_t limit) { limit_ = std::min(limit_, limit); }

  // For a child of this thread, or for the thread itself; its block is as new. 0: there is none.
  uint32_t reserve(pid_t pid, pid_t tid);
  // The thread has come. Returns what was reserved.
  Slot run(uint32_t slot, pid_t pid, pid_t tid);
  // The thread is about to be gone.
  void end_thread(uint32_t slot);
  // Those whose threads are gone by now: they are to be freed.
  std::vector<uint32_t> take_ended();
  void free(uint32_t slot);
  // Nobody gets it, and its block stays as it is, until it is taken with all others.
  void retain(uint32_t slot);
  size_t retained() const { return retained_.size(); }
  std::vector<uint32_t> take_retained() { return std::exchange(retained_, {}); }
  // Of a thread that another Weir process has served.
  void adopt(uint32_t slot, pid_t tid);

  // What running threads are about to map, or to unmap, at this very moment.
  std::vector<AppRange> takings() const;
  // May a program have these addresses? Blocks that there are stay where they are.
  bool can_give(AppRange range) const;
  // A block that was given away in one process is not used in any.
  void give(AppRange range);

 private:
  void begin_block(uint32_t slot);

  SharedMemory memory_;
  rt::RuntimeHeader doors_{};
  rt::ToolEntry tool_{};
  std::deque<Slot> slots_ = std::deque<Slot>(1);
  std::vector<uint32_t> ending_;    // whose threads are about to be gone
  std::vector<uint32_t> retained_;  // that the guardian knows
  std::vector<bool> given_;         // to programs that wanted their memory
  uint32_t limit_ = rt::max_slots;  // an attached process may have no room for all
};

}  // namespace weir::engine
