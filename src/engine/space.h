// A code space: the translated program of one process, or of several that were forked and have not parted yet.
//
// It owns what those processes map: the table, the code arenas and the page of translated ranges. Weir writes, the
// processes read and execute. What a space says of a program address is true for every process that shares it.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <vector>

#include "base/address.h"
#include "base/fd.h"
#include "base/flat_map.h"
#include "base/result.h"
#include "elf/image.h"
#include "engine/archive.h"
#include "instrument/lower.h"
#include "instrument/tool.h"
#include "process/memory.h"
#include "rt/abi.h"

namespace weir::engine {

// Shared memory: a file without a name, mapped here to be written.
struct SharedMemory {
  Fd file;
  Mapping mapping;

  static Result<SharedMemory> create(const char* name, size_t size);
  template <class T>
  T* as(size_t offset = 0) const {
    return reinterpret_cast<T*>(mapping.data() + offset);
  }
};

// A stretch of code cache, near enough to the images whose code it holds: direct jumps and rip-relative operands reach.
struct Arena {
  CachePc base;
  size_t size = 0;
  size_t used = 0;
  SharedMemory memory;
  std::vector<uint32_t> units;  // by offset
};

// An executable mapping of the program.
struct Region {
  AppRange range;
  uint64_t offset, inode;
  std::shared_ptr<elf::Image> image;  // none: anonymous memory
  uint64_t bias = 0;                  // address in memory less address in the file
  uint32_t image_index = 0;           // see Space::images
  uint32_t arena = 0;
  std::shared_ptr<Archive> archive;  // of translations of the image
  bool is_pristine = false;          // a file's code as it is in the file
  bool is_volatile = false;          // writable, or shared memory: its code may change at any time
};

// A translated function, or a part of one that was reached later.
struct Unit {
  AppPc entry;
  AppRange bounds;
  uint32_t arena = 0, offset = 0, size = 0, entry_offset = 0;
  uint32_t previous = 0;  // of the same function: one more than its id
  bool dead = false;
  std::vector<instrument::BlockPlace> blocks = {};
  std::vector<instrument::Mark> marks = {};
  std::vector<AppPc> table = {};  // addresses that the table sends here
};

// A place where translated code asks; see instrument::Exit. Direct ones with the same target form a list.
struct LinkSite {
  instrument::Exit exit;
  uint32_t unit = 0;
  uint32_t previous = 0;  // with the same target: one more than its id
};

struct SpaceStats {
  uint64_t functions = 0, blocks = 0, instructions = 0, code_bytes = 0, app_bytes = 0, not_supported = 0, nanoseconds = 0,
           flushed_units = 0, from_archive = 0;
};

class Space {
 public:
  static constexpr int no_code = -1;  // exit_status of an error of translate(): nothing can be executed there
  static Result<std::unique_ptr<Space>> create(std::unique_ptr<instrument::Tool> tool, uint64_t table_address);
  // A copy with memory of its own, for a process that takes a way of its own.
  Result<std::unique_ptr<Space>> copy() const;

  // Where a program address is translated: the place for direct transfers; 0 where it is not.
  CachePc find(AppPc pc) const;
  // The same, and translates it if need be, reading the code of process `pid`.
  Result<CachePc> translate(AppPc pc, pid_t pid);
  // Makes the table send `pc` to its translation at `to`, if it does not yet.
  void enter_indirect_target(AppPc pc, CachePc to);

  // What is at a cache address.
  struct Place {
    rt::Place place = rt::Place::NotCache;
    AppPc app;
    uint64_t restore = 0, spilled = 0;
    CachePc resume;
  };
  Place where(CachePc pc) const;

  // The program changes the mappings of [range]: what was translated there is forgotten.
  void forget(AppRange range);
  // Volatile code at `pc` is not what it was when it was translated.
  void forget_entry(AppPc pc);
  // Keeps what was translated for later runs.
  void save_archives();
  // Is there a region of code in it that is known here?
  bool knows(AppRange range) const;

  const LinkSite* link_site(uint32_t id) const { return id < links_.size() ? &links_[id] : nullptr; }
  CachePc cache_pc(uint32_t unit, uint32_t offset) const {
    return arenas_[units_[unit].arena].base + units_[unit].offset + offset;
  }
  void link(uint32_t id, CachePc to);

  instrument::Tool& tool() { return *tool_; }
  uint32_t counters() const { return counters_.size(); }
  const SpaceStats& stats() const { return stats_; }
  std::span<const std::string> images() const { return images_; }

  // Makes room near every executable region of the process; returns the arenas that are new.
  Result<std::vector<uint32_t>> cover(std::span<const process::Region> regions);
  // Called when a new region is found while its process runs: must map the arena there.
  std::function<Result<>(const Arena&)> map_arena;
  // Called when a new region is found: may the space hold it, or do processes that share it differ?
  std::function<bool(const process::Region&)> may_add;

  const SharedMemory& table() const { return table_; }
  uint64_t table_address() const { return table_address_; }
  uint64_t id() const { return page_.as<rt::SpacePage>()->id; }
  const SharedMemory& page() const { return page_; }
  std::span<const Arena> arenas() const { return arenas_; }

 private:
  Space() = default;
  Region* region_at(AppPc pc);
  Result<Region*> find_region(AppPc pc, pid_t pid);
  Result<Region*> add_region(const process::Region& r, pid_t pid);
  Result<uint32_t> arena_for(AppRange range, std::span<const process::Region> taken);
  AppRange bounds_of(const Region& region, AppPc pc) const;
  std::span<const std::byte> code_of(const Region& region, AppRange bounds, pid_t pid);
  CachePc find_in_function(AppPc pc, AppRange bounds);
  CachePc guard(const Region& region, uint32_t unit);
  void retire(uint32_t unit);
  CachePc commit(Region& region, Unit unit, const instrument::Lowered& lowered);
  CachePc take_from_archive(Region& region, AppPc pc);
  CachePc put_down(Region& region, const UnitView& kept);
  void link_waiting(AppPc target, CachePc to);
  void unlink(AppPc target);
  Result<> create_memory();
  void write_page();
  void enter_in_table(AppPc pc, CachePc to) { __atomic_store_n(&table_entry(pc), to.value, __ATOMIC_RELEASE); }
  uint64_t& table_entry(AppPc pc) { return *table_.as<uint64_t>(8 * (pc.value & 0xffffffff)); }

  std::unique_ptr<instrument::Tool> tool_;
  instrument::Counters counters_;
  SharedMemory table_, page_;
  uint64_t table_address_ = rt::table_base;  // in the target
  std::vector<Arena> arenas_;
  std::vector<Region> regions_;  // by address
  std::vector<std::string> images_;
  std::vector<Unit> units_;
  std::vector<uint32_t> live_;   // units that are not dead
  FlatMap<uint32_t> functions_;  // by begin of the bounds: one more than its last unit (see Unit::previous)
  FlatMap<CachePc> entries_;     // of units, and of blocks that were asked for
  FlatMap<uint32_t> sites_;      // target → one more than its last LinkSite
  std::vector<LinkSite> links_;
  SpaceStats stats_;
  // Reused from one translation to the next.
  std::vector<std::byte> code_;
  std::vector<x86::Block> guarded_;  // blocks of the last unit
  instrument::Plan plan_;
  instrument::Lowered lowered_, kept_;
};

// Images are the same for all spaces: opened once.
Result<std::shared_ptr<elf::Image>> open_image(pid_t pid, const process::Region& region);

}  // namespace weir::engine
