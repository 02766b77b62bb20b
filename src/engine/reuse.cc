// Room of code that was forgotten. A program that writes code on and on would fill the cache, and Weir's memory, with what it has long overwritten.
//
// Nothing leads to a dead unit, but for other dead units. So a thread that was seen outside of them since they died will never come there: when it
// asked where to go on, and was sent to live code, or in a system call that live code makes. When all threads were seen, the units of that time go.
//
// Where the code cache has a limit (--cache-mb), all code is forgotten when it has grown to half of that. A thread that computes or waits all the
// time in one function keeps what was forgotten, and the cache grows.

#include <algorithm>
#include <set>

#include "engine/space.h"

namespace weir::engine {

namespace {
constexpr size_t many_dead = 256, more_dead = 64;
}  // namespace

uint64_t Space::wants_reuse() {
  bool is_flushed = !dead_.empty() && live_.empty();  // (few large functions may fill a cache)
  if (dying_.empty() && (dead_.size() >= many_dead || is_flushed)) {
    dying_ = std::exchange(dead_, {});
    dying_epoch_ = epoch_;
    next_try_ = 0;
  }
  if (dying_.empty() || dead_.size() < next_try_) return 0;
  next_try_ = dead_.size() + more_dead;  // to look at threads takes time
  return dying_epoch_;
}

bool Space::is_in_dead_code(CachePc pc) const {
  uint32_t n = unit_at(pc);
  return n && units_[n - 1].dead;
}

void Space::forget_dead_units(AppPc function, Version version) {
  for (uint32_t* place = versions_[version].functions.find(function); place && *place;) {
    Unit& unit = units_[*place - 1];
    if (unit.dead) *place = unit.previous;
    else place = &unit.previous;
  }
}

// Links go first, so that threads leave soon.
void Space::flush() {
  links_.unlink_all();
  for (uint32_t id : live_)
    if (!units_[id].dead) retire(id);
  live_.clear();
  next_try_ = 0;
  stats_.cache_flushes++;
}

void Space::reuse_dead() {
  std::set<std::pair<AppPc, Version>> targets, functions;
  for (uint32_t id : dying_) {
    const Unit& unit = units_[id];
    for (AppPc pc : {unit.entry, unit.bounds.begin}) functions.insert({pc, version_of_unit(unit)});
    for (uint32_t n = unit.first_exit; n < unit.first_exit + unit.exits; n++)
      if (const LinkSite& site = links_.site(n); site.exit.kind == instrument::Exit::Direct)
        targets.insert({site.exit.target, site.exit.version});
  }
  for (auto [target, version] : targets) links_.forget_dead(target, version);
  for (auto [function, version] : functions) forget_dead_units(function, version);
  std::erase_if(dying_, [&](uint32_t id) { return !units_[id].room; });
  for (uint32_t id : dying_) {
    Unit& unit = units_[id];
    Arena& arena = arenas_[unit.arena];
    arena.free_code.give(unit.offset, unit.room);
    forget_places(arena.base + unit.offset, unit.room);
    for (uint32_t n = unit.first_exit; n < unit.first_exit + unit.exits; n++) {
      const LinkSite& site = links_.site(n);
      if (site.far) arena.free_code.give(site.far, instrument::far_jump_size);
      bool is_outside = site.exit.stub < unit.offset || site.exit.stub >= unit.offset + unit.room;
      if (site.exit.stub && is_outside) arena.free_code.give(site.exit.stub, instrument::stub_size);
    }
    arena.free_links.give(unit.first_exit, unit.exits);
    unit.room = 0;
  }
  std::set<uint32_t> gone(dying_.begin(), dying_.end());
  std::erase_if(live_, [&](uint32_t id) { return gone.contains(id); });
  for (Arena& arena : arenas_) std::erase_if(arena.units, [&](uint32_t id) { return gone.contains(id); });
  for (uint32_t id : dying_) units_[id] = {};
  free_units_.insert(free_units_.end(), dying_.begin(), dying_.end());
  dying_.clear();
}

// The number of the unit; the arena knows it by its place.
uint32_t Space::new_unit(Unit unit) {
  auto id = static_cast<uint32_t>(units_.size());
  if (free_units_.empty()) units_.emplace_back();
  else id = free_units_.back(), free_units_.pop_back();
  Arena& arena = arenas_[unit.arena];
  auto at = std::upper_bound(arena.units.begin(), arena.units.end(), unit.offset,
                             [&](uint32_t o, uint32_t other) { return o < units_[other].offset; });
  arena.units.insert(at, id);
  forget_places(arena.base + unit.offset, unit.size);
  units_[id] = std::move(unit);
  live_.push_back(id);
  return id;
}

}  // namespace weir::engine
