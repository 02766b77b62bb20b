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
  auto f = functions_.find(bounds.begin);
  if (f == functions_.end()) return {};
  for (uint32_t id : f->second) {
    const Unit& unit = units_[id];
    auto b = std::lower_bound(unit.blocks.begin(), unit.blocks.end(), pc, [](const instrument::BlockPlace& x, AppPc a) { return x.app < a; });
    if (b != unit.blocks.end() && b->app == pc) return entries_[pc] = cache_pc(id, b->offset);
  }
  return {};
}

// Volatile code that is translated, and has not changed since.
CachePc Space::find_volatile(AppPc pc, pid_t pid) {
  auto known = volatile_.find(pc);
  if (known == volatile_.end()) return {};
  Unit& unit = units_[known->second];
  code_.resize(unit.snapshot.size());
  size_t got = process::read(pid, unit.bounds.begin.value, code_);
  if (got == unit.snapshot.size() && code_ == unit.snapshot) return cache_pc(known->second, unit.entry_offset);
  retire(known->second);
  return {};
}

Result<CachePc> Space::translate(AppPc pc, pid_t pid) {
  if (CachePc known = find(pc)) return known;
  auto begin_time = std::chrono::steady_clock::now();
  TRY(Region * region, find_region(pc, pid));
  AppRange bounds = bounds_of(*region, pc);
  if (CachePc known = region->is_volatile ? find_volatile(pc, pid) : find_in_function(pc, bounds)) return known;
  code_.resize(bounds.size());
  code_.resize(process::read(pid, bounds.begin.value, code_));
  x86::ReadMemory code = [&](AppPc at, size_t size) -> std::span<const std::byte> {
    if (at < bounds.begin || at >= bounds.begin + static_cast<int64_t>(code_.size())) return {};
    auto offset = static_cast<size_t>(at - bounds.begin);
    return std::span<const std::byte>(code_).subspan(offset, std::min(size, code_.size() - offset));
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

  size_t bound = instrument::size_bound(f, plan_);
  if (arenas_[region->arena].used + bound > arenas_[region->arena].size) {
    TRY(auto all, process::regions(pid));
    TRY(region->arena, arena_for(region->range, all));
  }
  Arena& arena = arenas_[region->arena];
  arena.used = (arena.used + 15) & ~size_t{15};
  if (arena.used + bound > arena.size) return fail("the code cache is full");
  instrument::lower({f, live, plan_, code, arena.memory.mapping.bytes().subspan(arena.used, bound), arena.base + static_cast<int64_t>(arena.used),
                     static_cast<uint32_t>(links_.size()), [&](AppPc a) { return find(a); }}, lowered_);
  CachePc entry = commit(*region, f);
  stats_.nanoseconds += static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin_time).count());
  return entry;
}

// The lowered code becomes a unit: known, in the table, linked.
CachePc Space::commit(const Region& region, const x86::Function& f) {
  Arena& arena = arenas_[region.arena];
  auto id = static_cast<uint32_t>(units_.size());
  Unit unit{f.entry, f.bounds, region.arena, static_cast<uint32_t>(arena.used), lowered_.size, lowered_.entry, false, lowered_.blocks, lowered_.marks, {}, {}};
  arena.units.push_back(id);
  arena.used += lowered_.size;
  if (region.is_volatile) unit.snapshot = code_;
  else for (const auto& t : lowered_.table) unit.table.push_back(t.app);
  units_.push_back(std::move(unit));
  for (const instrument::Exit& exit : lowered_.exits) {
    auto link_id = static_cast<uint32_t>(links_.size());
    links_.push_back({exit, id, ~0u, false});
    if (exit.kind != instrument::Exit::Direct) continue;
    auto [first, is_new] = sites_.try_emplace(exit.target, link_id);
    if (!is_new) links_[link_id].next = std::exchange(first->second, link_id);
    links_[link_id].linked = exit.stub == 0;
  }
  CachePc entry = cache_pc(id, lowered_.entry);
  if (region.is_volatile) {
    volatile_[f.entry] = id;
  } else {
    functions_[f.bounds.begin].push_back(id);
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
