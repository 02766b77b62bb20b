// A code space: the translated program of one process, or of several that were forked and have not parted yet.
//
// It owns what those processes map: the table, the code arenas and the page of translated ranges. Weir writes, the
// processes read and execute. What a space says of a program address is true for every process that shares it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/address.h"
#include "base/fd.h"
#include "base/flat_map.h"
#include "base/published.h"
#include "base/result.h"
#include "base/shared_memory.h"
#include "elf/image.h"
#include "engine/arena.h"
#include "engine/links.h"
#include "engine/named.h"
#include "engine/translation.h"
#include "engine/twins.h"
#include "instrument/tool.h"
#include "process/program.h"
#include "rt/abi.h"
#include "symbols/mapped_image.h"

namespace weir::engine {

// What a process must map. A space has a list that only grows: each process maps what is new since it last did.
struct Piece {
  int file;
  uint64_t offset;
  uint64_t address;
  size_t size;
  int protection;
  bool is_archive = false;  // of a file, else of shared memory
  bool is_change = false;   // something is there already, and goes on working
  bool is_new = false;      // nothing is there, or the arena is given up: see Space::claim
};

// An executable mapping of the program.
struct Region {
  AppRange range;
  uint64_t offset;
  std::shared_ptr<elf::Image> image;  // none: anonymous memory
  uint64_t bias = 0;                  // address in memory less address in the file
  uint32_t image_index = 0;           // see Space::images
  uint32_t arena = 0;
  bool is_pristine = false;  // a file's code as it is in the file
  bool is_volatile = false;  // writable, or shared memory: its code may change at any time
  bool is_readable = true;
  ArchiveKey file = {};  // of volatile code: a private mapping of it
  std::shared_ptr<const NamedPlaces> named = {};  // null: not looked for yet, or nobody asks
};

using instrument::Version;

struct SpaceStats {
  uint64_t functions = 0, blocks = 0, instructions = 0, code_bytes = 0, app_bytes = 0, not_supported = 0, nanoseconds = 0,
           flushed_units = 0, from_archive = 0, cache_flushes = 0;
};

class Space {
 public:
  static constexpr pid_t no_process = 0;
  using MakeTool = std::function<std::unique_ptr<instrument::Tool>()>;
  // What threads are about to map, or to unmap, at this very moment.
  using Takings = std::function<std::vector<AppRange>()>;
  // For a process that has mapped `taken`. The table lies low, where it is found fastest, unless the program will want those addresses.
  static Result<std::unique_ptr<Space>> create(const MakeTool& make_tool, const Takings& takings,
                                               std::span<const process::Region> taken, bool keeps_off_low);
  // A copy with memory of its own, for a process that takes a way of its own.
  Result<std::unique_ptr<Space>> copy() const;

  // Where a program address is translated: the place for direct transfers; 0 where it is not.
  CachePc find(AppPc pc, Version version) const;
  // The same, and translates it if need be, reading the code of process `pid`. What will be needed for that is told in `soon`.
  Result<CachePc> translate(AppPc pc, Version version, pid_t pid, rt::Soon* soon = nullptr);
  // Where the system call whose next instruction is `next` has its own, behind the call itself; 0: it is no such place.
  CachePc behind_system_call(AppPc next, Version version, pid_t pid);
  // Where the table sends `pc`; 0: nowhere.
  CachePc table_entry(AppPc pc, Version version) const;
  // Of what is at a cache address.
  Version version_of(CachePc pc) const;
  bool has_version(uint64_t version) const { return version < versions_.size(); }
  // Makes the table of its version send `pc` to its translation at `to`, if it does not yet.
  void enter_indirect_target(AppPc pc, CachePc to);

  // What is at a cache address.
  struct Place {
    rt::Place place = rt::Place::NotCache;
    AppPc app;
    uint64_t restore = 0, spilled = 0;
    CachePc resume;
  };
  Place where(CachePc pc) const;
  // Is it where control comes from outside to a function or a block? Then all that probes count before has been counted, and nothing of what comes.
  bool is_entry(CachePc pc) const;
  // The same of all blocks: where a thread may change versions.
  bool begins_block(CachePc pc) const;
  // The same for the line around `pc`, for the runtime to read. False: there is no memory for that.
  bool tell_places(CachePc pc);
  bool make_places();

  // The code around `pc`, as the process has it.
  Result<> know(AppPc pc, pid_t pid);
  // Code that has just been mapped from a file.
  Result<> add(const process::Region& region, std::shared_ptr<elf::Image> image, pid_t pid);
  // Memory that is executable, known as code or not: see engine/twins.h. False: it has become a long list, see find_code().
  bool note_code(AppRange range);
  // … and is not any more.
  void note_no_code(AppRange range);
  // All such memory of the process, anew.
  void find_code(pid_t pid);
  // Does no other code have the same low 32 bits?
  bool may_add(AppRange range) const { return twins_.has_room_for(range); }
  // … and is nothing else promised that place?
  bool has_room_for(AppRange range) const;
  // An arena near code that may come.
  Result<> reserve_near(AppRange range, pid_t pid);
  // A range where an image is going to be mapped.
  void promise(AppRange range);
  // The program wants addresses that are ours. What it can have; none: we cannot do without (Giving::All).
  std::optional<std::vector<AppRange>> parts_to_give(AppRange range, rt::Giving how) const;
  // These are the program's from now on, and are to be unmapped. The process has mapped so many of the pieces.
  void give(std::vector<AppRange>& parts, size_t mapped);
  // Another space for the same process: nothing is translated yet, and `wanted` is the program's.
  Result<std::unique_ptr<Space>> begin_elsewhere(AppRange wanted, bool moves_table) const;
  // The new arena at `base` could not be mapped, as there is memory of the program's by now: it is forgotten. False: it holds code.
  bool give_up(CachePc base);
  std::span<const AppRange> own() const { return own_; }
  // Where the tool's regions are: theirs to stay, in this space, in its copies and in those that processes move to.
  std::span<const AppRange> tool_regions() const { return tool_regions_; }
  bool has_tool_region_in(AppRange range) const;
  bool is_own(AppPc pc) const;
  bool is_in_table(AppRange range) const {
    return range.begin.value >= table_address() && range.end.value <= table_address() + rt::table_size;
  }
  // Is its part of the table still ours?
  bool has_table_for(AppRange range) const;
  // Finds the code around `pc` in the process, and room for its translation. False: the space would have to grow, and may not.
  bool prepare(AppPc pc, Version version, pid_t pid, bool may_grow);
  // The program changes the mappings of [range]: what was translated there is forgotten.
  void forget(AppRange range);
  // Volatile code at `pc` is not what it was when it was translated, to `at`.
  void forget_changed(AppPc pc, CachePc at);
  // Dead units may be reused when every thread has been seen elsewhere in this epoch or later; 0: not now. Epochs are counted by what dies.
  uint64_t wants_reuse();
  uint64_t epoch() const { return epoch_; }
  bool has_dead_code() const { return !dead_.empty() || !dying_.empty(); }
  bool is_in_dead_code(CachePc pc) const;
  void reuse_dead();
  // Is there a region of code in it that is known here?
  bool knows(AppRange range) const;
  std::vector<AppRange> known_code() const;
  // Does all code that is known there stay what it is, as its guards look, when the range is protected so that it can be read and executed?
  bool stays_guarded(AppRange range, bool is_writable) const;
  // Of the code cache, in bytes; 0: there is none. Half of it is for code that lives, half for what was flushed and may still be in use.
  void set_limit(size_t limit) { limit_ = limit; }
  bool is_full() const { return limit_ && live_code_ > limit_ / 2; }
  void flush();
  // Touches a page that will be needed soon: new ones take a good part of the time of a translation. False: there is none.
  bool make_page_ahead();
  // From now on nothing new needs to be mapped for code that is known.
  void make_all_writable();
  // Translates what another program has translated of the same images, as they are in their files. (There is no process any more.)
  void translate_all_of(const Space& other);
  // Keeps what was translated for later runs.
  void save_archives();
  size_t to_keep() const;  // units

  Links& links() { return links_; }

  instrument::Tool& tool() const { return *tool_; }
  bool names_functions() const { return !named_.empty(); }
  uint32_t counters() const { return counters_.size(); }
  const SpaceStats& stats() const { return stats_; }
  std::span<const std::string> images() const { return images_; }
  std::span<const Piece> pieces() const { return pieces_; }
  // The same for a process that may not open our files: archives are named by copies in shared memory.
  int file_for_others(const Piece& piece) const;
  uint64_t table_address() const { return normal().table_address; }
  // This process goes on for one that was killed: see base/published.h.
  void adopt();
  uint64_t id() const { return page_.as<rt::SpacePage>()->id; }
  std::chrono::steady_clock::time_point next_look = {};  // of the tool at its threads: see instrument::Tool::look
  uint64_t code_size() const { return arenas_.code_size(); }
  uint64_t table_size() const;  // of all tables: their pages that are in use

 private:
  // What a version has of its own.
  struct Translated {
    SharedMemory table = {};
    uint64_t table_address = rt::table_base;  // in the target
    FlatMap<uint32_t> functions = {};         // by begin of the bounds: one more than its last unit (see Unit::previous)
    FlatMap<CachePc> entries = {};            // of units, and of blocks that were asked for
  };
  Space() = default;
  static Result<std::unique_ptr<Space>> create_empty(const MakeTool& make_tool, const Takings& takings);
  Result<> create_memory();
  Translated& normal() { return versions_[0]; }
  const Translated& normal() const { return versions_[0]; }
  Version version_of_unit(const Unit& unit) const { return arenas_[unit.arena].version; }
  void choose_tables(uint64_t first, const std::function<bool(AppRange)>& is_free);

  // space.cc
  Region* region_at(AppPc pc);
  const Region* region_at(AppPc pc) const { return const_cast<Space*>(this)->region_at(pc); }
  Result<Region*> find_region(AppPc pc, pid_t pid, bool may_grow = true);
  void add_image(const std::string& name);
  Region* add_region(const process::Region& r, std::shared_ptr<elf::Image> image, bool is_pristine);
  Result<uint32_t> arena_near(AppRange range, Version version, pid_t pid);
  std::optional<uint32_t> find_common_arena(Version version, const std::function<bool(const Arena&)>& may_hold) const;
  std::optional<uint32_t> arena_for(const Region& region, Version version) const;
  bool is_free(uint64_t begin, size_t size, std::span<const process::Region> taken) const;
  CachePc find_gap(AppRange range, size_t size, std::span<const process::Region> taken) const;
  Result<std::vector<process::Region>> taken_memory(pid_t pid) const;
  bool claim(CachePc base, size_t size);
  Result<uint32_t> create_common_arena(CachePc base, size_t size, Version version);
  Result<uint32_t> create_arena(CachePc base, size_t size);
  Result<> find_room(Region& region, pid_t pid);
  void tell_regions();
  void tell_own(AppRange range);
  void write_own();
  void add_piece(Piece piece);
  void give_of_table(AppRange part);
  bool is_given(AppRange range) const;
  std::vector<AppRange> can_give(AppRange own, AppRange wanted) const;
  std::vector<AppRange> can_give_of_table(AppRange part) const;
  void write_page();
  void write_code();
  void retire(uint32_t unit);

  // reuse.cc
  uint32_t new_unit(Unit unit);
  void forget_dead_units(AppPc function, Version version);

  // translate.cc
  AppRange bounds_of(const Region& region, AppPc pc) const;
  AppRange bounds_of(const Region& region, AppPc pc, uint64_t unknown) const;  // `unknown`: its size, if nobody says it
  std::span<const std::byte> code_of(const Region& region, AppRange bounds, pid_t pid,
                                     std::vector<std::byte>& buffer) const;
  std::span<const std::byte> constants_of(const Region& region, AppPc at, size_t size) const;
  std::span<const std::byte> data_of(Translation& t, AppPc at, size_t size) const;
  CachePc find_in_function(AppPc pc, AppRange bounds, Version version);
  void tell(rt::Soon& soon, const Translation& t) const;
  void expect_calls(uint32_t arena, std::span<const instrument::Exit> exits);
  struct Room {
    size_t size;
    size_t end;                    // of what the arena used before
    std::optional<uint32_t> free;  // where it begins, if it was free again
    uint32_t most_exits;
    uint32_t first_exit = 0;
    bool has_free_exits = false;  // numbers that are free again
  };
  Result<> cut_out(Translation& t);
  Result<> plan(Translation& t);
  Result<Room> take_room(Arena& arena, size_t size, uint32_t most_exits);
  void give_rest(Arena& arena, const Room& room, uint32_t exits);
  Result<CachePc> lower(Translation& t);
  CachePc commit(Translation& t, uint32_t first_exit);

  // named.cc
  bool is_named(const Region& region, AppPc pc) const;
  AppRange without_named(const Region& region, AppRange bounds, AppPc pc) const;
  void keep_entries_apart(Translation& t) const;
  void plan_named(Translation& t);
  void plan_ends(Translation& t) const;

  // guards.cc
  std::string archive_name() const;
  size_t guards_bound(const Translation& t) const;
  CachePc guard(const Translation& t, uint32_t unit, std::span<const instrument::TableEntry> places);
  void forget_unit_at(AppPc pc, CachePc at);

  // table.cc
  uint32_t unit_at(CachePc pc) const;
  CachePc cache_pc(uint32_t unit, uint32_t offset) const {
    return arenas_[units_[unit].arena].base + units_[unit].offset + offset;
  }
  uint64_t& table_cell(AppPc pc, Version version) const {
    return *versions_[version].table.as<uint64_t>(8 * (pc.value & 0xffffffff));
  }
  void enter_in_table(AppPc pc, Version version, CachePc to);
  void enter_all(uint32_t unit, std::span<const instrument::TableEntry> places);
  bool is_return_site(AppPc pc, CachePc at) const;
  void empty_cells(LowRange low);
  void empty_cells(LowRange low, Version version);

  // places.cc
  void forget_places(CachePc begin, size_t size);

  // archived.cc
  const Arena* arena_of_code(AppPc pc) const { return has_archives_ ? find_arena_of_code(pc) : nullptr; }
  const Arena* find_arena_of_code(AppPc pc) const;
  Result<bool> give_own_arena(Region& region);
  bool has_free_links(uint32_t first, uint64_t count) const;
  Result<bool> give_volatile_arena(Region& region, pid_t pid);
  void open_archive(Arena& arena, std::shared_ptr<const Archive> archive);
  void map_archive(const Arena& arena);
  void map_changed_pages(const Arena& arena);
  void map_all_changed(const Arena& arena);
  void copy_archived(const Space& from);
  CachePc find_archived(AppPc pc) const;
  CachePc find_archived_block(AppPc pc, AppRange bounds) const;
  const std::byte* archived_table_page(const Arena& arena, AppPc pc) const;
  void make_writable(Arena& arena, uint32_t offset);
  void make_table_writable(Arena& arena, AppPc pc);
  void make_writable(Arena& arena);
  void make_writable_at_once(Arena& arena);
  void forget_archived_unit(Arena& arena, AppPc pc, CachePc at);
  void take_over(uint32_t arena);
  void save(Arena& arena);

  Takings takings_;
  std::unique_ptr<instrument::Tool> tool_;
  instrument::Counters counters_;
  NamedFunctions named_;
  std::vector<Translated> versions_;
  SharedMemory page_;
  Twins twins_;
  size_t long_list_ = rt::max_code;  // of executable memory: see note_code
  SharedMemory places_;              // from the first signal on
  uint32_t next_place_ = 0;          // its record
  std::vector<Piece> pieces_;
  Arenas arenas_;
  std::vector<AppRange> tool_regions_;
  std::vector<AppRange> own_;                             // what is mapped for us, and where nothing may be
  AppRange claim_ = {};                                   // what is to become part of it
  std::vector<AppRange> given_;                           // what was, and is the program's now,
  std::vector<LowRange> given_low_;                       // … and of these low halves the table
  bool is_told_ = false;                                  // that there are too many of them
  bool has_archives_ = false;                             // one of the arenas has, or had, one
  std::vector<std::shared_ptr<const Archive>> given_up_;  // pieces name their files
  std::vector<Region> regions_;                           // by address
  std::vector<AppRange> promised_;
  std::vector<std::string> images_;
  Published<char> image_names_;  // the same, each with a 0 behind it
  Units units_;
  Links links_{arenas_, units_, [this](Arena& arena, uint32_t offset) { make_writable(arena, offset); }};
  std::vector<uint32_t> live_;  // units that are not dead
  std::vector<uint32_t> dead_, dying_,
      free_units_;  // dead: not asked about yet, asked about (see wants_reuse), to be used again
  uint64_t epoch_ = 1, dying_epoch_ = 0;
  size_t next_try_ = 0;  // to reuse them: when so many more are dead
  SpaceStats stats_;
  size_t limit_ = 0, live_code_ = 0;
  std::vector<AppPc> expected_;  // what the last functions call, if it is not translated: see make_page_ahead
  uint32_t growing_ = 0;         // the arena of the last one
  Translation translation_;
};

}  // namespace weir::engine
