// The table: from addresses of the program to places in the cache; and back, from a place to the program's state.

#include <algorithm>

#include "engine/space.h"

namespace weir::engine {

// The places of a new unit that the table is to lead to. A tool's probes of a return site must be met by returns, and may be by jumps: an
// older unit may have the place as the target of a jump only.
void Space::enter_all(uint32_t id, std::span<const instrument::TableEntry> places) {
  Version version = version_of_unit(units_[id]);
  for (const instrument::TableEntry& t : places) {
    CachePc known = t.app == units_[id].entry ? CachePc{} : table_entry(t.app, version);
    if (!known || (t.is_return_site && tool_->has_probes() && !is_return_site(t.app, known)))
      enter_in_table(t.app, version, cache_pc(id, t.offset));
  }
}

bool Space::is_return_site(AppPc pc, CachePc at) const {
  uint32_t n = unit_at(at);
  if (!n || !units_[n - 1].return_sites) return false;
  auto sites = std::span(units_[n - 1].table).subspan(1, units_[n - 1].return_sites);
  return std::ranges::find(sites, pc) != sites.end();
}

CachePc Space::table_entry(AppPc pc, Version version) const {
  if (twins_.is_shared(pc)) return twins_.find(pc, version);
  const Arena* arena = version ? nullptr : arena_of_code(pc);
  const std::byte* archived = arena ? archived_table_page(*arena, pc) : nullptr;
  if (!archived) return {table_cell(pc, version)};
  uint64_t entry;
  memcpy(&entry, archived + 8 * (pc.value % (Archive::page / 8)), 8);
  return {entry};
}

void Space::enter_in_table(AppPc pc, Version version, CachePc to) {
  if (twins_.is_shared(pc)) return twins_.enter(pc, version, to);
  if (const Arena* arena = version ? nullptr : arena_of_code(pc)) make_table_writable(const_cast<Arena&>(*arena), pc);
  // (A fault of a reader maps the pages around it as well, which are writable then; one of a writer does not.)
  uint64_t& cell = table_cell(pc, version);
  __atomic_load_n(&cell, __ATOMIC_RELAXED);
  __atomic_store_n(&cell, to.value, __ATOMIC_RELEASE);
}

// These low halves are shared from now on: what the table has of them goes to the twins. One region alone had them until now.
void Space::empty_cells(LowRange low) {
  for (Version version = 0; version < versions_.size(); version++) empty_cells(low, version);
}

void Space::empty_cells(LowRange low, Version version) {
  for (const Region& region : regions_) {
    for (const LowRange& own : low_halves(region.range)) {
      uint64_t begin = std::max(low.begin, own.begin), end = std::min(low.end, own.end);
      if (begin >= end) continue;
      AppPc first = region.range.begin + static_cast<int64_t>((begin - region.range.begin.value) & 0xffffffff);
      if (const Arena* arena = version ? nullptr : arena_of_code(first)) make_writable_at_once(const_cast<Arena&>(*arena));
      arenas_[region.arena].is_keepable = false;
      for (uint64_t at = begin; at < end; at++) {
        if (at % (Archive::page / 8) == 0 || at == begin) at = next_in_use(versions_[version].table, 8 * at) / 8;
        if (at >= end) break;
        AppPc pc = first + static_cast<int64_t>(at - begin);
        if (uint64_t to = std::exchange(table_cell(pc, version), 0)) twins_.enter(pc, version, {to});
      }
    }
  }
}

// A block that was not known as a target of indirect transfers gets an entry that takes rcx back.
void Space::enter_indirect_target(AppPc pc, CachePc to) {
  const Region* region = region_at(pc);
  Version version = version_of(to);
  if (!region || region->is_volatile || table_entry(pc, version)) return;
  Arena* arena = arenas_.at(to);
  if (!arena || !links_.has_room(*arena, 32)) return;
  CachePc entry = arena->base + static_cast<int64_t>(arena->used);
  instrument::write_table_entry(arena->memory->mapping.bytes().subspan(arena->used, 32), entry, to);
  arena->used += 32;
  uint32_t* last = versions_[version].functions.find(bounds_of(*region, pc).begin);
  if (last && *last) units_[*last - 1].table.push_back(pc);
  enter_in_table(pc, version, entry);
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
CachePc Space::behind_system_call(AppPc next, Version version, pid_t pid) {
  constexpr int64_t longest = 1024;  // of what stands for a call, with probes before it
  AppPc pc = next + -2;
  if (!prepare(pc, version, pid, true)) return {};
  auto call = translate(pc, version, pid);
  if (!call) return {};
  for (int64_t i = 0; i < longest; i++)
    if (Place at = where(*call + i); at.place == rt::Place::Exact && at.app == next && (at.restore & rt::SetRcxToPc))
      return *call + i;
  return {};
}

Space::Place Space::where(CachePc pc) const {
  const Arena* arena = arenas_.at(pc);
  if (arena && arena->has_archived(pc)) return where_archived(*arena, arena->offset_of(pc));
  uint32_t n = arena ? engine::unit_at(units_, *arena, pc) : 0;
  if (!n) return {rt::Place::NotCache, {pc.value}, 0, 0, {}};
  const Unit& unit = units_[n - 1];
  return place_in(arena->base + unit.offset, arena->offset_of(pc) - unit.offset, unit.marks, unit.bounds.begin, unit.entry);
}

uint32_t Space::unit_at(CachePc pc) const {
  const Arena* arena = arenas_.at(pc);
  return arena ? engine::unit_at(units_, *arena, pc) : 0;
}

Version Space::version_of(CachePc pc) const {
  const Arena* arena = arenas_.at(pc);
  return arena ? arena->version : Version{0};
}

bool Space::begins_block(CachePc pc) const {
  uint32_t n = unit_at(pc);
  if (!n) return false;
  const Unit& unit = units_[n - 1];
  auto is_there = [&](uint32_t offset) { return pc == cache_pc(n - 1, offset); };
  return is_there(unit.entry_offset) || std::ranges::any_of(unit.blocks, [&](const instrument::BlockPlace& b) {
           return b.app != unit.entry && is_there(b.offset);
         });
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
