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
    if (auto v = region.image->function_bounds({pc.value - region.bias}))
      bounds = {{v->begin.value + region.bias}, {v->end.value + region.bias}};
  }
  if (!bounds.contains(pc) || bounds.size() > max_bounds) bounds = {pc, pc + unknown_bounds};
  bounds.begin = std::max(bounds.begin, region.range.begin);
  bounds.end = std::min(bounds.end, region.range.end);
  return bounds;
}

// Another unit of the function may have it as a block.
CachePc Space::find_in_function(AppPc pc, AppRange bounds) {
  uint32_t* place = functions_.find(bounds.begin);  // of the number of the next unit; dead ones are taken out
  while (place && *place) {
    uint32_t id = *place - 1;
    Unit& unit = units_[id];
    if (unit.dead) {
      *place = unit.previous;
      continue;
    }
    place = &unit.previous;
    auto b = std::lower_bound(unit.blocks.begin(), unit.blocks.end(), pc,
                              [](const instrument::BlockPlace& x, AppPc a) { return x.app < a; });
    if (b != unit.blocks.end() && b->app == pc) return entries_[pc] = cache_pc(id, b->offset);
  }
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
  if (CachePc known = region->is_volatile ? CachePc{} : find_in_function(pc, bounds)) return known;
  if (CachePc kept = take_from_archive(*region, pc)) return kept;
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
  if (code(pc, 1).empty()) return fail("its code at {:#x} cannot be read", pc.value);
  x86::Function f = x86::lift(pc, bounds, code, data);
  x86::BlockId first = f.block_at(pc);
  if (first == x86::no_block || (f.blocks[first].ends == x86::BlockEnd::Undecodable && f.blocks[first].count == 1))
    return std::unexpected(Error{fmt::format("{:#x} cannot be translated", pc.value), no_code});
  x86::Liveness live = x86::liveness(f);
  plan_.clear();
  tool_->plan({f, live, region->image_index}, counters_, plan_);
  if (counters_.size() > rt::max_counters) return fail("too many counters: the program is too large for this tool");

  instrument::Bound bound = instrument::size_bound(f, plan_);
  if (arenas_[region->arena].used + bound.bytes + bounds.size() + 256 > arenas_[region->arena].size) {
    TRY(auto all, process::regions(pid));
    TRY(region->arena, arena_for(region->range, all));
  }
  Arena& arena = arenas_[region->arena];
  arena.used = (arena.used + 15) & ~size_t{15};
  if (arena.used + bound.bytes + bounds.size() + 256 > arena.size) return fail("the code cache is full");
  instrument::lower({f, live, plan_, code, bound.uses_gs, arena.memory.mapping.bytes().subspan(arena.used, bound.bytes),
                     arena.base + static_cast<int64_t>(arena.used), table_address_, static_cast<uint32_t>(links_.size()),
                     [&](AppPc a) { return find(a); }},
                    lowered_);
  CachePc base = arena.base + static_cast<int64_t>(arena.used);
  if (region->archive && !lowered_.not_supported)
    region->archive->add(lowered_, arena.memory.mapping.bytes().subspan(arena.used, lowered_.size), bytes, pc, bounds, base,
                         region->bias, static_cast<uint32_t>(links_.size()));
  stats_.functions++;
  stats_.blocks += f.blocks.size();
  stats_.instructions += f.insns.size();
  stats_.code_bytes += lowered_.size;
  for (const auto& b : f.blocks) stats_.app_bytes += static_cast<uint64_t>(b.end - b.begin);
  stats_.not_supported += lowered_.not_supported;
  guarded_ = f.blocks;
  CachePc entry = commit(*region, {pc, bounds}, lowered_);
  stats_.nanoseconds += static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin_time).count());
  return entry;
}

// The lowered code becomes a unit: known, in the table, linked.
CachePc Space::commit(Region& region, Unit unit, const instrument::Lowered& lowered) {
  Arena& arena = arenas_[region.arena];
  auto id = static_cast<uint32_t>(units_.size());
  AppPc entry_pc = unit.entry;
  AppRange bounds = unit.bounds;
  unit.arena = region.arena;
  unit.offset = static_cast<uint32_t>(arena.used);
  unit.size = lowered.size;
  unit.entry_offset = lowered.entry;
  unit.blocks = lowered.blocks;
  unit.marks = lowered.marks;
  arena.units.push_back(id);
  arena.used += lowered.size;
  // The table leads straight to the places of a unit, but for volatile code, which is looked at before it is entered.
  if (!region.is_volatile)
    for (const auto& t : lowered.table) unit.table.push_back(t.app);
  else unit.table.push_back(entry_pc);
  units_.push_back(std::move(unit));
  live_.push_back(id);
  for (const instrument::Exit& exit : lowered.exits) {
    auto link_id = static_cast<uint32_t>(links_.size());
    links_.push_back({exit, id, 0});
    if (exit.kind == instrument::Exit::Direct) links_[link_id].previous = std::exchange(sites_[exit.target], link_id + 1);
  }
  // (Units of volatile code are found by their entries only, and so stand alone as functions.)
  units_[id].previous = std::exchange(functions_[region.is_volatile ? entry_pc : bounds.begin], id + 1);
  if (region.is_volatile) return guard(region, id);
  for (const auto& t : lowered.table)
    if (!table_entry(t.app) || t.app == entry_pc) enter_in_table(t.app, cache_pc(id, t.offset));
  CachePc entry = entries_[entry_pc] = cache_pc(id, lowered.entry);
  link_waiting(entry_pc, entry);
  return entry;
}

// Entries for a unit of volatile code: they have the runtime compare the code with what was translated (rt_guard).
CachePc Space::guard(const Region& region, uint32_t id) {
  Arena& arena = arenas_[region.arena];
  const Unit& unit = units_[id];
  AppPc begin = unit.entry, end = unit.entry;
  for (const auto& b : guarded_) begin = std::min(begin, b.begin), end = std::max(end, b.end);
  auto size = static_cast<size_t>(end - begin);
  std::span<const std::byte> code =
      std::span<const std::byte>(code_).subspan(static_cast<size_t>(begin - unit.bounds.begin), size);
  arena.used = (arena.used + 15) & ~size_t{15};
  std::span<std::byte> out =
      arena.memory.mapping.bytes().subspan(arena.used, sizeof(rt::Guard) + size + instrument::guard_size);
  auto* record = reinterpret_cast<rt::Guard*>(out.data());
  *record = {begin.value, size, cache_pc(id, unit.entry_offset).value, unit.entry.value};
  memcpy(record + 1, code.data(), size);
  size_t at = (sizeof(rt::Guard) + size + 15) & ~size_t{15};
  CachePc direct = arena.base + static_cast<int64_t>(arena.used + at);
  CachePc through_table = instrument::write_guard(out.subspan(at), direct, arena.base + static_cast<int64_t>(arena.used));
  arena.used += at + instrument::guard_size;
  enter_in_table(unit.entry, through_table);
  entries_[unit.entry] = direct;
  link_waiting(unit.entry, direct);
  return direct;
}

// A unit that was kept from an earlier run, and those that were first used after it: they will probably be wanted next.
CachePc Space::take_from_archive(Region& region, AppPc pc) {
  if (!region.archive) return {};
  auto kept = region.archive->find({pc.value - region.bias});
  CachePc result = kept ? put_down(region, *kept) : CachePc{};
  constexpr int at_once = 32;
  for (int i = 1; result && i < at_once; i++) {
    kept = region.archive->next(*kept);
    if (!kept) break;
    if (!find({kept->head().entry + region.bias}) && !put_down(region, *kept)) break;
  }
  return result;
}

CachePc Space::put_down(Region& region, const UnitView& kept) {
  const ArchivedUnit& h = kept.head();
  Arena& arena = arenas_[region.arena];
  AppRange bounds{{h.begin + region.bias}, {h.end + region.bias}};
  size_t room = h.code_size + h.exits * instrument::stub_size;
  if (bounds.begin < region.range.begin || bounds.end > region.range.end || arena.used + room + 64 > arena.size) return {};
  if (h.line_offset >= 64 || checksum_of(code_of(region, bounds, 0)) != h.source)
    return {};  // another file with the same build-id
  while ((arena.base.value + arena.used) % 64 != h.line_offset) arena.used++;
  CachePc base = arena.base + static_cast<int64_t>(arena.used);
  bool same_half = bounds.begin.value >> 32 == base.value >> 32 && bounds.end.value >> 32 == base.value >> 32 &&
                   (base.value + room) >> 32 == base.value >> 32;
  if (!h.has_high && !same_half) return {};
  std::span<std::byte> out = arena.memory.mapping.bytes().subspan(arena.used, room);
  memcpy(out.data(), kept.code().data(), h.code_size);
  auto first_exit = static_cast<uint32_t>(links_.size());
  for (const instrument::Reloc& r : kept.relocs()) {
    bool wide = r.kind == instrument::Reloc::Absolute;
    uint64_t value = 0;
    memcpy(&value, &out[r.offset], wide ? 8 : 4);
    switch (r.kind) {
      case instrument::Reloc::Rip: value += region.bias - base.value; break;
      case instrument::Reloc::Low:
      case instrument::Reloc::Absolute: value += region.bias; break;
      case instrument::Reloc::High: value = (region.bias + r.value) >> 32; break;
      case instrument::Reloc::ExitId: value += first_exit; break;
    }
    memcpy(&out[r.offset], &value, wide ? 8 : 4);
  }
  kept_.size = h.code_size;
  kept_.entry = h.entry_offset;
  kept_.blocks.clear(), kept_.table.clear(), kept_.exits.clear();
  for (const ArchivedPair& b : kept.blocks()) kept_.blocks.push_back({bounds.begin + b.app, b.offset});
  for (const ArchivedPair& t : kept.table()) kept_.table.push_back({bounds.begin + t.app, t.offset});
  kept_.marks.assign(kept.marks().begin(), kept.marks().end());
  AppPc entry_pc{h.entry + region.bias};
  for (const ArchivedExit& e : kept.exits()) {
    instrument::Exit exit{
        static_cast<instrument::Exit::Kind>(e.kind), {e.target + region.bias}, e.offset, e.stub, e.pops, false};
    if (exit.kind == instrument::Exit::Direct) {
      // Linked to what is known here, else to its stub; one that had none, as it was linked from the start, gets one.
      CachePc to = exit.target == entry_pc ? base + h.entry_offset : find(exit.target);
      if (!to && !exit.stub) {
        exit.stub = kept_.size;
        instrument::write_stub(out.subspan(kept_.size, instrument::stub_size),
                               first_exit + static_cast<uint32_t>(kept_.exits.size()));
        kept_.size += instrument::stub_size;
      }
      int64_t distance = to ? to - (base + exit.offset + 4) : int64_t(exit.stub) - (exit.offset + 4);
      auto displacement = static_cast<int32_t>(distance);
      if (displacement != distance) return {};
      memcpy(&out[exit.offset], &displacement, 4);
      exit.linked = static_cast<bool>(to);
    }
    kept_.exits.push_back(exit);
  }
  stats_.from_archive++;
  return commit(region, {entry_pc, bounds}, kept_);
}

}  // namespace weir::engine
