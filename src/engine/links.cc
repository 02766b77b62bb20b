// Places in translated code: the table that leads to them, and the links from one to another.

#include <algorithm>

#include "engine/space.h"

namespace weir::engine {

const Arena* Space::arena_of(uint32_t link) const {
  for (const Arena& a : arenas_)
    if (link >= a.first_link && link - a.first_link < a.archived_links() + a.links.size()) return &a;
  return nullptr;
}

// One that is not in an archive.
LinkSite& Space::link_site(uint32_t number) {
  auto& arena = const_cast<Arena&>(*arena_of(number));
  return arena.links[number - arena.first_link - arena.archived_links()];
}

std::optional<instrument::Exit> Space::exit(uint32_t number) const {
  const Arena* arena = arena_of(number);
  if (!arena) return {};
  uint32_t i = number - arena->first_link;
  if (i >= arena->archived_links()) return arena->links[i - arena->archived_links()].exit;
  const ArchivedExit& e = arena->archive->parts().exits[i];
  auto kind = static_cast<instrument::Exit::Kind>(e.kind);
  auto made = e.stub ? archived_stubs_.end() : archived_stubs_.find(number);
  uint32_t stub = made == archived_stubs_.end() ? e.stub : made->second;
  return instrument::Exit{kind, false, e.pops, e.offset, arena->code.begin + e.target, stub};
}

// A link that was made when its code was lowered has no stub, and must get one when what it leads to goes: there is always room for that.
bool Space::has_room(const Arena& arena, size_t size) const {
  size_t stubs = arena.archived_links() + arena.links.size(), room = arena.size - arena.used;
  if (size + stubs * instrument::stub_size <= room) return true;
  stubs = arena.archived_links();
  for (const LinkSite& s : arena.links) stubs += s.exit.linked && !s.exit.stub && !units_[s.unit].dead;
  return size + stubs * instrument::stub_size <= room;
}

// Code that a program writes may lie where its arena is out of reach of that of what it calls. Where there is no room it asks each time.
CachePc Space::far_jump(Arena& arena, LinkSite& site, CachePc to) {
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
void Space::link(uint32_t number, CachePc to) {
  auto& arena = const_cast<Arena&>(*arena_of(number));
  instrument::Exit e = *exit(number);
  int64_t distance = to - (arena.base + e.offset + 4);
  bool is_far = distance != static_cast<int32_t>(distance);
  if (is_far && number - arena.first_link < arena.archived_links()) return;  // (its targets are in its own image)
  CachePc jump = is_far ? far_jump(arena, link_site(number), to) : CachePc{};
  if (is_far && !jump) return;
  if (is_far) distance = jump - (arena.base + e.offset + 4);
  make_writable(arena, e.offset);
  __atomic_store_n(arena.memory->as<int32_t>(e.offset), static_cast<int32_t>(distance), __ATOMIC_RELEASE);
  if (number - arena.first_link >= arena.archived_links()) link_site(number).exit.linked = true;
  else if (arena.is_volatile) archived_sites_.insert({e.target, number});
}

void Space::link_if_alive(uint32_t number, CachePc to) {
  const Arena* arena = arena_of(number);
  if (number - arena->first_link >= arena->archived_links() && units_[link_site(number).unit].dead) return;
  link(number, to);
}

void Space::link_waiting(AppPc target, CachePc to) {
  const uint32_t* last = sites_.find(target);
  for (uint32_t n = last ? *last : 0; n;) {
    const LinkSite& site = link_site(n - 1);
    uint32_t previous = site.previous;
    if (!site.exit.linked && !units_[site.unit].dead) link(n - 1, to);
    n = previous;
  }
}

void Space::unlink(AppPc target) {
  uint32_t* place = sites_.find(target);  // of the number of the next site; those of dead units are taken out
  while (place && *place) {
    uint32_t number = *place - 1;
    LinkSite& s = link_site(number);
    if (units_[s.unit].dead) {
      *place = s.previous;
      continue;
    }
    place = &s.previous;
    if (s.exit.linked) unlink(const_cast<Arena&>(*arena_of(number)), number);
  }
  auto [first, last] = archived_sites_.equal_range(target);
  std::vector<std::pair<AppPc, uint32_t>> archived(first, last);
  archived_sites_.erase(first, last);
  for (auto [_, number] : archived) {
    const Arena* arena = arena_of(number);
    if (number - arena->first_link < arena->archived_links()) link(number, arena->base + exit(number)->stub);
  }
  archived_sites_.erase(target);  // (they lead to their stubs)
}

void Space::unlink(Arena& arena, uint32_t number) {
  LinkSite& s = link_site(number);
  if (!s.exit.stub) s.exit.stub = make_stub(arena, number);
  link(number, arena.base + s.exit.stub);
  s.exit.linked = false;
}

// For a link that was made when its code was lowered.
uint32_t Space::make_stub(Arena& arena, uint32_t number) {
  uint32_t stub = arena.free_code.take(instrument::stub_size).value_or(static_cast<uint32_t>(arena.used));
  if (stub == arena.used) arena.used += instrument::stub_size;
  CHECK(arena.used <= arena.size);
  instrument::write_stub(arena.memory->mapping.bytes().subspan(stub, instrument::stub_size), number);
  return stub;
}

// The places of a new unit that the table is to lead to. A tool's probes of a return site must be met by returns, and may be by jumps: an
// older unit may have the place as the target of a jump only.
void Space::enter_all(uint32_t id, std::span<const instrument::TableEntry> places) {
  for (const instrument::TableEntry& t : places) {
    CachePc known = t.app == units_[id].entry ? CachePc{} : table_entry(t.app);
    if (!known || (t.is_return_site && tool_->has_probes() && !is_return_site(t.app, known)))
      enter_in_table(t.app, cache_pc(id, t.offset));
  }
}

bool Space::is_return_site(AppPc pc, CachePc at) const {
  uint32_t n = unit_at(at);
  if (!n || !units_[n - 1].return_sites) return false;
  auto sites = std::span(units_[n - 1].table).subspan(1, units_[n - 1].return_sites);
  return std::ranges::find(sites, pc) != sites.end();
}

CachePc Space::table_entry(AppPc pc) const {
  if (twins_.is_shared(pc)) return twins_.find(pc);
  const Arena* arena = arena_of_code(pc);
  const std::byte* archived = arena ? archived_table_page(*arena, pc) : nullptr;
  if (!archived) return {table_cell(pc)};
  uint64_t entry;
  memcpy(&entry, archived + 8 * (pc.value % (Archive::page / 8)), 8);
  return {entry};
}

void Space::enter_in_table(AppPc pc, CachePc to) {
  if (twins_.is_shared(pc)) return twins_.enter(pc, to);
  if (const Arena* arena = arena_of_code(pc)) make_table_writable(const_cast<Arena&>(*arena), pc);
  // (A fault of a reader maps the pages around it as well, which are writable then; one of a writer does not.)
  __atomic_load_n(&table_cell(pc), __ATOMIC_RELAXED);
  __atomic_store_n(&table_cell(pc), to.value, __ATOMIC_RELEASE);
}

// These low halves are shared from now on: what the table has of them goes to the twins. One region alone had them until now.
void Space::empty_cells(LowRange low) {
  for (const Region& region : regions_) {
    for (const LowRange& own : low_halves(region.range)) {
      uint64_t begin = std::max(low.begin, own.begin), end = std::min(low.end, own.end);
      if (begin >= end) continue;
      AppPc first = region.range.begin + static_cast<int64_t>((begin - region.range.begin.value) & 0xffffffff);
      if (const Arena* arena = arena_of_code(first)) make_writable_at_once(const_cast<Arena&>(*arena));
      arenas_[region.arena].is_keepable = false;
      for (uint64_t at = begin; at < end; at++) {
        if (at % (Archive::page / 8) == 0 || at == begin) at = next_in_use(table_, 8 * at) / 8;
        if (at >= end) break;
        AppPc pc = first + static_cast<int64_t>(at - begin);
        if (uint64_t to = std::exchange(table_cell(pc), 0)) twins_.enter(pc, {to});
      }
    }
  }
}

// A block that was not known as a target of indirect transfers gets an entry that takes rcx back.
void Space::enter_indirect_target(AppPc pc, CachePc to) {
  const Region* region = region_at(pc);
  if (!region || region->is_volatile || table_entry(pc)) return;
  for (Arena& a : arenas_) {
    if (!a.contains(to)) continue;
    if (!has_room(a, 32)) return;
    CachePc entry = a.base + static_cast<int64_t>(a.used);
    instrument::write_table_entry(a.memory->mapping.bytes().subspan(a.used, 32), entry, to);
    a.used += 32;
    if (uint32_t* last = functions_.find(bounds_of(*region, pc).begin); last && *last)
      units_[*last - 1].table.push_back(pc);
    enter_in_table(pc, entry);
    return;
  }
}

namespace {
// The program's state at `offset` of a unit that begins at `base`.
Space::Place place_in(CachePc base, uint32_t offset, std::span<const instrument::Mark> marks, AppPc begin, AppPc entry) {
  using instrument::Mark;
  auto m = std::upper_bound(marks.begin(), marks.end(), offset, [](uint32_t o, const Mark& x) { return o < x.offset; });
  if (m == marks.begin()) return {rt::Place::Middle, entry, 0, 0, base + offset};
  --m;
  AppPc app = begin + m->app;
  if (m->kind == Mark::Run) return {rt::Place::Exact, app + (offset - m->offset), 0, 0, base + offset};
  bool exact = m->kind == Mark::Exact && m->offset == offset;
  return {exact ? rt::Place::Exact : rt::Place::Middle, app, m->restore, m->spilled, base + m->resume};
}

Space::Place where_archived(const Arena& arena, uint32_t offset) {
  const ArchiveParts& parts = arena.archive->parts();
  auto u = std::upper_bound(parts.units.begin(), parts.units.end(), offset,
                            [](uint32_t o, const ArchivedUnit& x) { return o < x.offset; });
  if (u == parts.units.begin()) return {rt::Place::Middle, arena.code.begin, 0, 0, arena.base + offset};
  --u;
  return place_in(arena.base + u->offset, offset - u->offset, parts.marks.subspan(u->first_mark, u->marks),
                  arena.code.begin + u->begin, arena.code.begin + u->entry);
}
}  // namespace

// (Of code from an archive, too: what is known of each place tells.)
CachePc Space::behind_system_call(AppPc next, pid_t pid) {
  constexpr int64_t longest = 1024;  // of what stands for a call, with probes before it
  AppPc pc = next + -2;
  if (!prepare(pc, pid, true)) return {};
  auto call = translate(pc, pid);
  if (!call) return {};
  for (int64_t i = 0; i < longest; i++)
    if (Place at = where(*call + i); at.place == rt::Place::Exact && at.app == next && (at.restore & rt::SetRcxToPc))
      return *call + i;
  return {};
}

Space::Place Space::where(CachePc pc) const {
  for (const Arena& a : arenas_) {
    if (!a.contains(pc)) continue;
    auto offset = static_cast<uint32_t>(pc - a.base);
    if (a.archive && offset < a.archive->parts().code.size()) return where_archived(a, offset);
    auto u = std::upper_bound(a.units.begin(), a.units.end(), offset,
                              [&](uint32_t o, uint32_t id) { return o < units_[id].offset; });
    if (u == a.units.begin()) break;
    const Unit& unit = units_[*--u];
    return place_in(a.base + unit.offset, offset - unit.offset, unit.marks, unit.bounds.begin, unit.entry);
  }
  return {rt::Place::NotCache, {pc.value}, 0, 0, {}};
}

bool Space::is_entry(CachePc pc) const {
  uint32_t n = unit_at(pc);
  if (!n) return false;
  const Unit& unit = units_[n - 1];
  auto is_there = [&](uint32_t offset) { return pc == cache_pc(n - 1, offset); };
  // (Between its entry and its first block a function may have probes.)
  return is_there(unit.entry_offset) || std::ranges::any_of(unit.blocks, [&](const instrument::BlockPlace& b) {
           return b.is_entry && b.app != unit.entry && is_there(b.offset);
         });
}
}  // namespace weir::engine
