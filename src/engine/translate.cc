// From an address of the program to its translation: find the function, lift it, ask the tool, lower it, link it.

#include <algorithm>
#include <chrono>

#include "engine/space.h"
#include "x86/liveness.h"

namespace weir::engine {

namespace {

constexpr uint64_t unknown_bounds = 4096;  // of code that no symbol or FDE describes
constexpr uint64_t max_bounds = 4u << 20;

}  // namespace

AppRange Space::bounds_of(const Region& region, AppPc pc) const {
  AppRange bounds{pc, pc + unknown_bounds};
  if (region.image) {
    if (auto v = region.image->function_bounds({pc.value - region.bias})) bounds = {{v->begin.value + region.bias}, {v->end.value + region.bias}};
  }
  if (!bounds.contains(pc) || bounds.size() > max_bounds) bounds = {pc, pc + unknown_bounds};
  bounds.begin = std::max(bounds.begin, region.range.begin);
  bounds.end = std::min(bounds.end, region.range.end);
  return bounds;
}

// Another unit of the function may have it as a block.
CachePc Space::find_in_function(AppPc pc, AppRange bounds) {
  const uint32_t* last = functions_.find(bounds.begin);
  for (uint32_t n = last ? *last : 0; n; n = units_[n - 1].previous) {
    const Unit& unit = units_[n - 1];
    auto b = std::lower_bound(unit.blocks.begin(), unit.blocks.end(), pc, [](const instrument::BlockPlace& x, AppPc a) { return x.app < a; });
    if (!unit.dead && b != unit.blocks.end() && b->app == pc) return entries_[pc] = cache_pc(n - 1, b->offset);
  }
  return {};
}

// Volatile code that is translated, and has not changed since.
CachePc Space::find_volatile(AppPc pc, pid_t pid) {
  const uint32_t* known = volatile_.find(pc);
  if (!known || !*known) return {};
  uint32_t id = *known - 1;
  Unit& unit = units_[id];
  code_.resize(unit.snapshot.size());
  size_t got = process::read(pid, unit.bounds.begin.value, code_);
  if (got == unit.snapshot.size() && code_ == unit.snapshot) return cache_pc(id, unit.entry_offset);
  retire(id);
  return {};
}

// The bytes of the function: those of the file while nobody has written to them, else those of the process.
std::span<const std::byte> Space::code_of(const Region& region, AppRange bounds, pid_t pid) {
  if (region.is_pristine) {
    auto file = region.image->bytes();
    uint64_t offset = region.offset + static_cast<uint64_t>(bounds.begin - region.range.begin);
    if (offset + bounds.size() <= file.size()) return file.subspan(offset, bounds.size());
  }
  code_.resize(bounds.size());
  code_.resize(process::read(pid, bounds.begin.value, code_));
  return code_;
}

Result<CachePc> Space::translate(AppPc pc, pid_t pid) {
  if (CachePc known = find(pc)) return known;
  auto begin_time = std::chrono::steady_clock::now();
  TRY(Region * region, find_region(pc, pid));
  AppRange bounds = bounds_of(*region, pc);
  if (CachePc known = region->is_volatile ? find_volatile(pc, pid) : find_in_function(pc, bounds)) return known;
  std::span<const std::byte> bytes = code_of(*region, bounds, pid);
  x86::ReadMemory code = [&](AppPc at, size_t size) -> std::span<const std::byte> {
    if (at < bounds.begin || at >= bounds.begin + static_cast<int64_t>(bytes.size())) return {};
    auto offset = static_cast<size_t>(at - bounds.begin);
    return bytes.subspan(offset, std::min(size, bytes.size() - offset));
  };
  std::vector<std::byte> data_bytes;
  x86::ReadMemory data = [&](AppPc at, size_t size) -> std::span<const std::byte> {
    data_bytes.resize(size);
    return std::span<const std::byte>(data_bytes).first(process::read(pid, at.value, data_bytes));
  };
  if (code(pc, 1).empty()) return fail("{:#x} cannot be read", pc.value);
  x86::Function f = x86::lift(pc, bounds, code, data);
  x86::BlockId first = f.block_at(pc);
  if (first == x86::no_block || (f.blocks[first].ends == x86::BlockEnd::Undecodable && f.blocks[first].count == 1))
    return fail("{:#x} cannot be translated", pc.value);
  x86::Liveness live = x86::liveness(f);
  plan_.clear();
  tool_->plan({f, live, region->image_index}, counters_, plan_);
  if (counters_.size() > rt::max_counters) return fail("too many counters: the program is too large for this tool");

  instrument::Bound bound = instrument::size_bound(f, plan_);
  if (arenas_[region->arena].used + bound.bytes > arenas_[region->arena].size) {
    TRY(auto all, process::regions(pid));
    TRY(region->arena, arena_for(region->range, all));
  }
  Arena& arena = arenas_[region->arena];
  arena.used = (arena.used + 15) & ~size_t{15};
  if (arena.used + bound.bytes > arena.size) return fail("the code cache is full");
  instrument::lower({f, live, plan_, code, bound.uses_gs, arena.memory.mapping.bytes().subspan(arena.used, bound.bytes), arena.base + static_cast<int64_t>(arena.used),
                     static_cast<uint32_t>(links_.size()), [&](AppPc a) { return find(a); }}, lowered_);
  CachePc entry = commit(*region, f);
  stats_.nanoseconds += static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin_time).count());
  return entry;
}

// The lowered code becomes a unit: known, in the table, linked.
CachePc Space::commit(const Region& region, const x86::Function& f) {
  Arena& arena = arenas_[region.arena];
  auto id = static_cast<uint32_t>(units_.size());
  Unit unit{f.entry, f.bounds, region.arena, static_cast<uint32_t>(arena.used), lowered_.size, lowered_.entry, 0, false, lowered_.blocks, lowered_.marks, {}, {}};
  arena.units.push_back(id);
  arena.used += lowered_.size;
  if (region.is_volatile) unit.snapshot = code_;  // code_of() has just read them
  else for (const auto& t : lowered_.table) unit.table.push_back(t.app);
  units_.push_back(std::move(unit));
  for (const instrument::Exit& exit : lowered_.exits) {
    auto link_id = static_cast<uint32_t>(links_.size());
    links_.push_back({exit, id, 0, exit.kind == instrument::Exit::Direct && exit.stub == 0});
    if (exit.kind == instrument::Exit::Direct) links_[link_id].previous = std::exchange(sites_[exit.target], link_id + 1);
  }
  CachePc entry = cache_pc(id, lowered_.entry);
  if (region.is_volatile) {
    volatile_[f.entry] = id + 1;
  } else {
    units_[id].previous = std::exchange(functions_[f.bounds.begin], id + 1);
    for (const auto& t : lowered_.table)
      if (!table_entry(t.app) || t.app == f.entry) enter_in_table(t.app, cache_pc(id, t.offset));
    entries_[f.entry] = entry;
    link_waiting(f.entry, entry);
  }
  stats_.functions++;
  stats_.blocks += f.blocks.size();
  stats_.instructions += f.insns.size();
  stats_.code_bytes += lowered_.size;
  for (const auto& b : f.blocks) stats_.app_bytes += static_cast<uint64_t>(b.end - b.begin);
  stats_.not_supported += lowered_.not_supported;
  return entry;
}

}  // namespace weir::engine
