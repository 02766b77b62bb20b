// Links: the exits of translated code, and where they lead.
//
// A direct exit leads to its stub, which asks, until its target is translated; then it is linked, and leads there. When what it leads to
// goes it leads to its stub again. Exits have numbers, by which stubs ask; those of an archive come before those of this run.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "base/flat_map.h"
#include "engine/arena.h"

namespace weir::engine {

class Links {
 public:
  // What is to be done before code of an arena is written to.
  using BeforeWrite = std::function<void(Arena& arena, uint32_t offset)>;
  Links(Arenas& arenas, const Units& units, BeforeWrite before_write)
      : arenas_(arenas), units_(units), before_write_(std::move(before_write)) {}
  Links(const Links&) = delete;
  // As those of a space whose arenas and units ours are copies of.
  void copy(const Links& from);

  std::optional<instrument::Exit> exit(uint32_t number) const;
  // One that is not in an archive.
  LinkSite& site(uint32_t number);
  const LinkSite& site(uint32_t number) const { return const_cast<Links*>(this)->site(number); }
  // The first of numbers for at most so many.
  uint32_t first_for(Arena& arena, uint32_t most);
  void add(Arena& arena, uint32_t number, LinkSite site);
  // Those of an archive become those of this run; its units are now those from `first_unit` on.
  void take_over(Arena& arena, uint32_t first_unit);
  // Is there room in the arena for so many bytes, and all the stubs that may come to be needed?
  bool has_room(const Arena& arena, size_t size) const;
  // Stubs that were made for exits of archives, by number.
  const std::map<uint32_t, uint32_t>& archived_stubs() const { return archived_stubs_; }

  void link(uint32_t number, CachePc to);
  // … if its code is not dead.
  void link_if_alive(uint32_t number, CachePc to);
  // All that lead to `target` in that version.
  void link_waiting(AppPc target, instrument::Version version, CachePc to);
  void unlink(AppPc target, instrument::Version version);
  void unlink_all();
  // An exit of an archive leads to its stub, whatever it leads to now.
  void unlink_archived(Arena& arena, uint32_t number);
  // The list of links to `target` has those of dead units no longer.
  void forget_dead(AppPc target, instrument::Version version);

 private:
  CachePc far_jump(Arena& arena, LinkSite& site, CachePc to);
  void unlink(Arena& arena, uint32_t number);
  uint32_t make_stub(Arena& arena, uint32_t number);

  Arenas& arenas_;
  const Units& units_;
  BeforeWrite before_write_;
  FlatMap<uint32_t> sites_[rt::max_versions];      // target → one more than the number of its last LinkSite
  std::multimap<AppPc, uint32_t> archived_sites_;  // target → links of archived volatile code that were made in this run
  std::map<uint32_t, uint32_t> archived_stubs_;    // of links of archived code that had none, by number
};

}  // namespace weir::engine
