// Volatile code: it may be rewritten at any time, by whatever way, and nobody tells us. So each place of a unit that control comes to from
// elsewhere (its entry, where its calls return to, targets of jump tables) has a *guard*: a few instructions that have the runtime compare
// the code with what was translated (enter_guard). What is compared is what can be executed from there before the next guard.
//
//     arena    | unit | its code as it was | guard of a place: rt::Guard, entries | … |
//
// Where the processor can compare 64 bytes at once, and the code is near, the guard looks itself; else the runtime does.

#include <algorithm>

#include "base/processor.h"
#include "engine/space.h"

namespace weir::engine {

namespace {

constexpr uint64_t small_gap = 32;  // is looked at rather than left out
constexpr size_t guard_room = sizeof(rt::Guard) + 2 * sizeof(rt::GuardedCode) + instrument::wide_guard_size;

// What can be executed from a block on without coming back from a call, by address.
void find_reach(const x86::Function& f, x86::BlockId from, std::vector<bool>& seen, std::vector<AppRange>& reach) {
  seen.assign(f.blocks.size(), false);
  reach.clear();
  std::vector<x86::BlockId> todo{from};
  seen[from] = true;
  while (!todo.empty()) {
    const x86::Block& b = f.blocks[todo.back()];
    todo.pop_back();
    for (x86::BlockId next : {b.ends == x86::BlockEnd::Call ? x86::no_block : b.fallthrough, b.taken})
      if (next != x86::no_block && !seen[next]) seen[next] = true, todo.push_back(next);
  }
  for (x86::BlockId b = 0; b < f.blocks.size(); b++) {
    if (!seen[b]) continue;
    const x86::Block& block = f.blocks[b];
    if (!reach.empty() && block.begin <= reach.back().end + small_gap)
      reach.back().end = std::max(reach.back().end, block.end);
    else reach.push_back({block.begin, block.end});
  }
}

bool has_wide_guards() { return processor().has_wide_compares; }

}  // namespace

// Of an archive: what another processor cannot execute has another name.
std::string Space::archive_name() const {
  std::string name = tool_->archive_name();
  return name.empty() || !has_wide_guards() ? name : name + "-v4";
}

// Each guard of a block, and each stretch that it looks at.
size_t Space::guards_bound(const Translation& t) const {
  if (!t.region->is_volatile) return 0;
  size_t size = t.bounds.size(), stretches = std::min<size_t>(t.function.blocks.size(), size / small_gap + 1);
  size_t places = 1, compares = stretches + size / 64;
  for (const x86::Block& b : t.function.blocks) places += b.is_entry;
  return size + places * (guard_room + stretches * sizeof(rt::GuardedCode) + compares * instrument::wide_compare_size);
}

CachePc Space::guard(const Translation& t, uint32_t id, std::span<const instrument::TableEntry> places) {
  const Region& region = *t.region;
  Arena& arena = arenas_[t.arena];
  auto& entries = versions_[t.version].entries;
  const Unit& unit = units_[id];
  const x86::Function& f = t.function;
  AppPc begin = f.blocks.front().begin, end = begin;
  for (const auto& b : f.blocks) end = std::max(end, b.end);
  std::span<std::byte> out = arena.memory->mapping.bytes().subspan(arena.used);
  memcpy(out.data(), &t.code[static_cast<size_t>(begin - unit.bounds.begin)], static_cast<size_t>(end - begin));
  CachePc was = arena.base + static_cast<int64_t>(arena.used);
  size_t at = (static_cast<size_t>(end - begin) + 15) & ~size_t{15};
  std::vector<bool> seen;
  std::vector<AppRange> reach;
  std::vector<instrument::Compared> compared;
  bool is_locked = !region.is_readable && processor().has_protection_keys;
  bool is_wide = has_wide_guards() && !is_locked && near(arena.base, arena.size, region.range);
  for (const instrument::TableEntry& place : places) {
    x86::BlockId block = f.block_at(place.app);
    // (An instruction that the unit's bounds cut in two leads to a unit of its own, not back here.)
    if (block == x86::no_block || (f.blocks[block].ends == x86::BlockEnd::Undecodable && f.blocks[block].count == 1))
      continue;
    find_reach(f, block, seen, reach);
    CachePc record = arena.base + static_cast<int64_t>(arena.used + at);
    auto* guard = reinterpret_cast<rt::Guard*>(out.data() + at);
    guard->cache_pc = cache_pc(id, place.offset).value, guard->app_pc = place.app.value;
    guard->is_locked = is_locked;
    rt::GuardedCode* code = guard->code;
    compared.clear();
    for (AppRange r : reach) {
      if (!r.size()) continue;
      CachePc then = was + (r.begin - begin);
      *code++ = {r.begin.value, r.size(), then.value};
      compared.push_back({{r.begin.value}, then, r.size()});
    }
    *code++ = {};
    size_t size = static_cast<size_t>(reinterpret_cast<std::byte*>(code) - reinterpret_cast<std::byte*>(guard));
    CachePc direct = record + static_cast<int64_t>(size);
    CachePc through_table =
        is_wide ? instrument::write_wide_guard(out.subspan(at + size), direct, record, {guard->cache_pc}, compared)
                : instrument::write_guard(out.subspan(at + size), direct, record);
    size_t compares = 0;
    for (const instrument::Compared& c : compared) compares += (c.size + 63) / 64;
    at +=
        size + (is_wide ? instrument::wide_guard_size + compares * instrument::wide_compare_size : instrument::guard_size);
    at = (at + 7) & ~size_t{7};
    bool is_entry = place.app == unit.entry;
    if (is_entry || !table_entry(place.app, t.version)) enter_in_table(place.app, t.version, through_table);
    CachePc& known = entries[place.app];
    if (known && !is_entry) continue;
    known = direct;
    links_.link_waiting(place.app, t.version, direct);
  }
  arena.used = (arena.used + at + 15) & ~size_t{15};
  units_[id].room = static_cast<uint32_t>(arena.used) - unit.offset;
  return *entries.find(unit.entry);
}

// The unit around `at`, if it is one that has `pc`.
void Space::forget_unit_at(AppPc pc, CachePc at) {
  Arena* arena = arenas_.at(at);
  if (arena && arena->is_volatile && arena->has_archived(at)) return forget_archived_unit(*arena, pc, at);
  uint32_t n = unit_at(at);
  if (!n || units_[n - 1].dead) return;
  if (units_[n - 1].bounds.contains(pc)) retire(n - 1);
}

// Others may lead there by now.
void Space::forget_changed(AppPc pc, CachePc at) {
  const Region* region = region_at(pc);
  if (!region || !region->is_volatile) return;
  forget_unit_at(pc, at);
  for (Version version = 0; version < versions_.size(); version++) {
    forget_unit_at(pc, table_entry(pc, version));
    forget_unit_at(pc, find(pc, version));
  }
}

}  // namespace weir::engine
