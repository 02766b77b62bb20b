#include "engine/links.h"

#include <algorithm>
#include <cstring>

namespace weir::engine {

void Links::copy(const Links& from) {
  std::ranges::copy(from.sites_, sites_);
  archived_sites_ = from.archived_sites_;
  archived_stubs_ = from.archived_stubs_;
}

LinkSite& Links::site(uint32_t number) { return arenas_.of_link(number)->link(number); }

std::optional<instrument::Exit> Links::exit(uint32_t number) const {
  const Arena* arena = arenas_.of_link(number);
  if (!arena) return {};
  if (!arena->is_archived(number)) return arena->link(number).exit;
  const ArchivedExit& e = arena->archive->parts().exits[number - arena->first_link];
  auto kind = static_cast<instrument::Exit::Kind>(e.kind);
  auto made = e.stub ? archived_stubs_.end() : archived_stubs_.find(number);
  uint32_t stub = made == archived_stubs_.end() ? e.stub : made->second;
  return instrument::Exit{kind, false, e.pops, e.offset, arena->code.begin + e.target, stub};
}

uint32_t Links::first_for(Arena& arena, uint32_t most) {
  if (auto first = arena.free_links.take(most)) return *first;
  return static_cast<uint32_t>(arena.first_link + arena.all_links());
}

void Links::add(Arena& arena, uint32_t number, LinkSite site) {
  if (site.exit.kind == instrument::Exit::Direct)
    site.previous = std::exchange(sites_[site.exit.version][site.exit.target], number + 1);
  size_t index = number - arena.first_link - arena.archived_links();
  if (index == arena.links.size()) arena.links.push_back(site);
  else arena.links[index] = site;
}

void Links::take_over(Arena& arena, uint32_t first_unit) {
  const ArchiveParts& parts = arena.archive->parts();
  std::vector<LinkSite> links;
  for (uint32_t i = 0; i < parts.exits.size(); i++) {
    LinkSite site{*exit(arena.first_link + i)};
    auto u = std::upper_bound(parts.units.begin(), parts.units.end(), site.exit.offset,
                              [](uint32_t o, const ArchivedUnit& x) { return o < x.offset; });
    site.unit = first_unit + static_cast<uint32_t>(u == parts.units.begin() ? 0 : u - parts.units.begin() - 1);
    if (site.exit.kind == instrument::Exit::Direct) {
      int32_t distance;
      memcpy(&distance, arena.memory->mapping.data() + site.exit.offset, 4);
      site.exit.linked = !site.exit.stub || static_cast<int64_t>(site.exit.offset) + 4 + distance != site.exit.stub;
      site.previous = std::exchange(sites_[0][site.exit.target], arena.first_link + i + 1);
    }
    links.push_back(site);
  }
  arena.links.insert(arena.links.begin(), links.begin(), links.end());
}

// A link that was made when its code was lowered has no stub, and must get one when what it leads to goes: there is always room for that.
bool Links::has_room(const Arena& arena, size_t size) const {
  size_t stubs = arena.all_links(), room = arena.size - arena.used;
  if (size + stubs * instrument::stub_size <= room) return true;
  stubs = arena.archived_links();
  for (const LinkSite& s : arena.links) stubs += s.exit.linked && !s.exit.stub && !units_[s.unit].dead;
  return size + stubs * instrument::stub_size <= room;
}

// Code that a program writes may lie where its arena is out of reach of that of what it calls. Where there is no room it asks each time.
CachePc Links::far_jump(Arena& arena, LinkSite& site, CachePc to) {
  if (!site.far) {
    size_t begin = (arena.used + 15) & ~size_t{15};
    if (!has_room(arena, begin - arena.used + instrument::far_jump_size)) return {};
    site.far = static_cast<uint32_t>(begin);
    arena.used = begin + instrument::far_jump_size;
  }
  instrument::write_far_jump(arena.memory->mapping.bytes().subspan(site.far, instrument::far_jump_size), to);
  return arena.base + site.far;
}

// The displacement of a link is aligned within a cache line, so that others see the old or the new one.
void Links::link(uint32_t number, CachePc to) {
  Arena& arena = *arenas_.of_link(number);
  instrument::Exit e = *exit(number);
  int64_t distance = to - (arena.base + e.offset + 4);
  bool is_far = distance != static_cast<int32_t>(distance);
  if (is_far && arena.is_archived(number)) return;  // (its targets are in its own image)
  CachePc jump = is_far ? far_jump(arena, arena.link(number), to) : CachePc{};
  if (is_far && !jump) return;
  if (is_far) distance = jump - (arena.base + e.offset + 4);
  before_write_(arena, e.offset);
  __atomic_store_n(arena.memory->as<int32_t>(e.offset), static_cast<int32_t>(distance), __ATOMIC_RELEASE);
  if (!arena.is_archived(number)) arena.link(number).exit.linked = true;
  else if (arena.is_volatile) archived_sites_.insert({e.target, number});
}

void Links::link_if_alive(uint32_t number, CachePc to) {
  const Arena& arena = *arenas_.of_link(number);
  if (!arena.is_archived(number) && units_[arena.link(number).unit].dead) return;
  link(number, to);
}

void Links::link_waiting(AppPc target, instrument::Version version, CachePc to) {
  const uint32_t* last = sites_[version].find(target);
  for (uint32_t n = last ? *last : 0; n;) {
    const LinkSite& s = site(n - 1);
    uint32_t previous = s.previous;
    if (!s.exit.linked && !units_[s.unit].dead) link(n - 1, to);
    n = previous;
  }
}

void Links::unlink(AppPc target, instrument::Version version) {
  uint32_t* place = sites_[version].find(target);  // of the number of the next site; those of dead units are taken out
  while (place && *place) {
    uint32_t number = *place - 1;
    LinkSite& s = site(number);
    if (units_[s.unit].dead) {
      *place = s.previous;
      continue;
    }
    place = &s.previous;
    if (s.exit.linked) unlink(*arenas_.of_link(number), number);
  }
  if (version) return;
  auto [first, last] = archived_sites_.equal_range(target);
  std::vector<std::pair<AppPc, uint32_t>> archived(first, last);
  archived_sites_.erase(first, last);
  for (auto [_, number] : archived) {
    const Arena* arena = arenas_.of_link(number);
    if (arena->is_archived(number)) link(number, arena->base + exit(number)->stub);
  }
  archived_sites_.erase(target);  // (they lead to their stubs)
}

void Links::unlink(Arena& arena, uint32_t number) {
  LinkSite& s = arena.link(number);
  if (!s.exit.stub) s.exit.stub = make_stub(arena, number);
  link(number, arena.base + s.exit.stub);
  s.exit.linked = false;
}

void Links::unlink_all() {
  for (Arena& a : arenas_)
    for (uint32_t k = 0; k < a.links.size(); k++)
      if (a.links[k].exit.linked && !units_[a.links[k].unit].dead)
        unlink(a, static_cast<uint32_t>(a.first_link + a.archived_links() + k));
}

void Links::unlink_archived(Arena& arena, uint32_t number) {
  if (!exit(number)->stub) archived_stubs_[number] = make_stub(arena, number);
  link(number, arena.base + exit(number)->stub);
}

// For a link that was made when its code was lowered.
uint32_t Links::make_stub(Arena& arena, uint32_t number) {
  uint32_t stub = arena.free_code.take(instrument::stub_size).value_or(static_cast<uint32_t>(arena.used));
  if (stub == arena.used) arena.used += instrument::stub_size;
  CHECK(arena.used <= arena.size);
  instrument::write_stub(arena.memory->mapping.bytes().subspan(stub, instrument::stub_size), number);
  return stub;
}

void Links::forget_dead(AppPc target, instrument::Version version) {
  for (uint32_t* place = sites_[version].find(target); place && *place;) {
    LinkSite& s = site(*place - 1);
    if (units_[s.unit].dead) *place = s.previous;
    else place = &s.previous;
  }
}

}  // namespace weir::engine
