// Where translated code lies: arenas, the units in them, and the exits of those.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/address.h"
#include "base/shared_memory.h"
#include "engine/archive.h"
#include "engine/extents.h"
#include "instrument/lower.h"

namespace weir::engine {

// A translated function, or a part of one that was reached later.
struct Unit {
  AppPc entry;
  AppRange bounds;
  uint32_t arena = 0, offset = 0, size = 0, entry_offset = 0;
  uint32_t room = 0;  // bytes of the arena, with its guard; 0: it came from an archive
  uint32_t first_exit = 0, exits = 0;
  uint32_t previous = 0;  // of the same function: one more than its id
  bool dead = false;
  std::vector<instrument::BlockPlace> blocks = {};
  std::vector<instrument::Mark> marks = {};
  std::vector<AppPc> table = {};  // addresses that the table sends here: its entry,
  uint32_t return_sites = 0;      // … then so many of these, and others
};

// A place where translated code asks; see instrument::Exit. Direct ones with the same target form a list.
struct LinkSite {
  instrument::Exit exit;  // its offsets count from the begin of the arena
  uint32_t unit = 0;
  uint32_t previous = 0;  // with the same target: one more than its number
  uint32_t far = 0;       // where it goes when the target is too far away: a jump to any address
};

// A stretch of code cache, near enough to the images whose code it holds: direct jumps and rip-relative operands reach.
// That of an image at its home holds no other's, and begins with the code of earlier runs, if there is any: see
// archived.cc.
constexpr size_t arena_size = 512u << 20;  // where there is room
struct Arena {
  CachePc base;
  size_t size = 0;
  size_t used = 0;
  std::shared_ptr<SharedMemory> memory;
  std::vector<uint32_t> units = {};  // of this run, by offset
  uint32_t first_link = 0;           // the number of its first exit
  uint32_t max_links = 0;
  std::vector<LinkSite> links = {};  // behind those of the archive
  Extents free_code, free_links;     // below `used`; numbers of exits
  size_t made_to = 0;                // see Space::make_page_ahead
  std::shared_ptr<const Archive> archive = {};
  AppRange code = {};                   // of the image; empty: it may hold any
  std::vector<bool> code_pages = {};    // of the archive: those that are in `memory` now, as they were changed,
  std::vector<bool> table_pages = {};   // … and in the table
  uint32_t changed_chunks = 0;          // of both
  bool is_writable = false;             // all of them are
  uint32_t forgotten_units = 0;         // of the archive
  uint32_t not_supported = 0;           // instructions
  bool is_keepable = false;             // all that it holds is right for a later run
  bool is_volatile = false;             // its code is: see give_volatile_arena
  instrument::Version version = 0;      // of all that it holds
  std::vector<AppRange> segments = {};  // of an image's code

  size_t archived_links() const { return archive ? archive->parts().exits.size() : 0; }
  size_t all_links() const { return archived_links() + links.size(); }
  bool is_archived(uint32_t link) const { return link - first_link < archived_links(); }
  // One that is not the archive's.
  LinkSite& link(uint32_t number) { return links[number - first_link - archived_links()]; }
  const LinkSite& link(uint32_t number) const { return links[number - first_link - archived_links()]; }
  bool contains(CachePc pc) const { return base <= pc && pc < base + static_cast<int64_t>(size); }
  uint32_t offset_of(CachePc pc) const { return static_cast<uint32_t>(pc - base); }
  // Is the place in the code of the archive, as that is?
  bool has_archived(CachePc pc) const { return archive && offset_of(pc) < archive->parts().code.size(); }
};

// Can code anywhere in the arena reach anything in the range?
bool near(CachePc base, size_t size, AppRange range);

// All of a space. Their indices stay as they are.
class Arenas {
 public:
  bool empty() const { return arenas_.empty(); }
  size_t size() const { return arenas_.size(); }
  Arena& operator[](size_t index) { return arenas_[index]; }
  const Arena& operator[](size_t index) const { return arenas_[index]; }
  auto begin() { return arenas_.begin(); }
  auto end() { return arenas_.end(); }
  auto begin() const { return arenas_.begin(); }
  auto end() const { return arenas_.end(); }
  uint32_t index_of(const Arena& arena) const { return static_cast<uint32_t>(&arena - arenas_.data()); }
  uint32_t add(Arena arena);

  // The one that a place is in; null: it is in none.
  Arena* at(CachePc pc);
  const Arena* at(CachePc pc) const { return const_cast<Arenas*>(this)->at(pc); }
  // That has an exit.
  Arena* of_link(uint32_t number);
  const Arena* of_link(uint32_t number) const { return const_cast<Arenas*>(this)->of_link(number); }
  // One of them, or none, has the numbers [first, first + count) for its exits.
  bool has_free_links(uint32_t first, uint64_t count) const;
  // None overlaps the range.
  bool has_room(AppRange range) const;
  // Of those that may hold any code, how many there are.
  uint32_t count_common() const;
  uint64_t code_size() const;

 private:
  std::vector<Arena> arenas_;
};

// Those that are translated, by id.
using Units = std::vector<Unit>;
// One more than the id of the unit of this run that has the place, or that stands before it; 0: none.
uint32_t unit_at(const Units& units, const Arena& arena, CachePc pc);

}  // namespace weir::engine
