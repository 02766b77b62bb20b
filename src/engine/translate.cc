// From an address of the program to its translation: find the function, lift it, ask the tool, lower it, link it.

#include <elf.h>

#include <algorithm>
#include <chrono>

#include "engine/space.h"
#include "instrument/cache_placement.h"
#include "x86/encoding.h"
#include "x86/liveness.h"

namespace weir::engine {

namespace {

constexpr uint64_t unknown_bounds = 4096;    // of code that no symbol or FDE describes,
constexpr uint64_t large_bounds = 64 << 10;  // … and that branches to further away
constexpr uint64_t volatile_before = 512, volatile_behind = 1536;
constexpr uint64_t max_bounds = 4u << 20;

size_t aligned(size_t offset) { return (offset + 15) & ~size_t{15}; }

}  // namespace

AppRange Space::bounds_of(const Region& region, AppPc pc) const { return bounds_of(region, pc, unknown_bounds); }

AppRange Space::bounds_of(const Region& region, AppPc pc, uint64_t unknown) const {
  AppRange bounds{pc, pc + unknown};
  // Of volatile code, where nobody asks for functions: not much, as it may be looked at often, and some before, where a loop may begin.
  if (region.is_volatile && !tool_->has_probes())
    bounds = {{pc.value - std::min(volatile_before, pc.value)}, pc + volatile_behind};
  else if (region.image) {
    elf::Vaddr place{pc.value - region.bias};
    if (auto v = region.image->function_bounds(place))
      bounds = {{v->begin.value + region.bias}, {v->end.value + region.bias}};
    else if (AppPc next{region.image->next_function(place).value + region.bias}; next > pc)
      bounds.end = std::min(bounds.end, next);
  }
  if (!bounds.contains(pc) || bounds.size() > max_bounds) bounds = {pc, pc + unknown};
  bounds = without_named(region, bounds, pc);
  bounds.begin = std::max(bounds.begin, region.range.begin);
  bounds.end = std::min(bounds.end, region.range.end);
  return bounds;
}

namespace {

// Does nobody say where the function at `pc` begins and ends?
bool is_guess(const Region& region, AppPc pc) {
  return !region.image || !region.image->function_bounds({pc.value - region.bias});
}

bool branches_beyond(const x86::Function& f, AppRange bounds) {
  return std::ranges::any_of(f.insns, [&](const x86::Insn& i) {
    return i.kind() == x86::Kind::Branch && i.target >= bounds.end && i.target < f.entry + large_bounds;
  });
}

// Where the function ends at the latest: at the first place behind its entry that it calls, or behind padding up to where functions are aligned to.
// (A byte like that may be part of an instruction. Padding is taken for instructions, too, where a call that never returns stands before it.)
AppPc likely_end(const x86::Function& f, AppRange bounds, std::span<const std::byte> code) {
  constexpr std::byte int3{0xcc};
  AppPc end = bounds.end;
  for (const x86::Insn& i : f.insns)
    if (i.kind() == x86::Kind::Call && i.target > f.entry && i.target < end) end = i.target;
  auto is_part = [&](AppPc at) {
    return std::ranges::any_of(f.insns, [&](const x86::Insn& i) { return i.pc < at && at < i.next(); });
  };
  for (AppPc at{(f.entry.value | 15) + 1}; at < end; at += 16) {
    auto before = static_cast<size_t>(at - bounds.begin) - 1;
    if (before < code.size() && code[before] == int3 && !is_part(at + -1)) return at;
  }
  return end;
}

// The first instruction that the end of the bounds cuts in two; null: there is none.
AppPc cut_instruction(const x86::Function& f, AppRange bounds) {
  AppPc cut{};
  for (const x86::Block& b : f.blocks) {
    if (b.ends != x86::BlockEnd::Undecodable) continue;
    const x86::Insn& last = f.insns_of(b).back();
    bool is_cut = last.shape->length == 0 && last.pc > f.entry && bounds.end - last.pc < x86::max_insn_length;
    if (is_cut && (!cut.value || last.pc < cut)) cut = last.pc;
  }
  return cut;
}

}  // namespace

// Another unit of the function may have it as a block.
CachePc Space::find_in_function(AppPc pc, AppRange bounds, Version version) {
  auto& [table, address, functions, entries] = versions_[version];
  uint32_t* place = functions.find(bounds.begin);  // of the number of the next unit; dead ones are taken out
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
    if (b != unit.blocks.end() && b->app == pc && b->is_entry) return entries[pc] = cache_pc(id, b->offset);
  }
  if (CachePc archived = version ? CachePc{} : find_archived_block(pc, bounds)) return entries[pc] = archived;
  return {};
}

// The bytes of the function: those of the file while nobody has written to them, else those of the process.
std::span<const std::byte> Space::code_of(const Region& region, AppRange bounds, pid_t pid,
                                          std::vector<std::byte>& buffer) const {
  if (region.is_pristine) {
    auto file = region.image->bytes();
    uint64_t offset = region.offset + static_cast<uint64_t>(bounds.begin - region.range.begin);
    if (offset <= file.size() && bounds.size() <= file.size() - offset) return file.subspan(offset, bounds.size());
  }
  buffer.resize(bounds.size());
  buffer.resize(process::read_code(pid, bounds.begin.value, buffer));
  return buffer;
}

// What an image has in its file, where it is not written to.
std::span<const std::byte> Space::constants_of(const Region& region, AppPc at, size_t size) const {
  elf::Vaddr vaddr{at.value - region.bias};
  auto file = region.image->bytes();
  for (const elf::Segment& s : region.image->segments()) {
    if (s.type != PT_LOAD || (s.flags & PF_W) || vaddr < s.vaddr || vaddr.value - s.vaddr.value >= s.file_size) continue;
    uint64_t offset = vaddr.value - s.vaddr.value;
    size = std::min<uint64_t>(size, s.file_size - offset);
    if (s.offset > file.size() || offset + size > file.size() - s.offset) return {};
    return file.subspan(s.offset + offset, size);
  }
  return {};
}

// The first pages of the function, or those behind `pc`.
void Space::tell(rt::Soon& soon, const Translation& t) const {
  constexpr uint64_t most = 256 << 10;
  const Arena& arena = arenas_[t.arena];
  uint64_t table = versions_[t.version].table_address, table_end = table + rt::table_size;
  AppPc begin = t.pc - t.bounds.begin < static_cast<int64_t>(most) ? t.bounds.begin : t.pc;
  uint64_t size = std::min(static_cast<uint64_t>(t.bounds.end - begin), most);
  uint64_t cell = table + 8 * (begin.value & 0xffffffff);
  uint64_t code = arena.base.value + arena.used, code_end = arena.base.value + arena.size;
  soon.ranges[0] = {cell & ~uint64_t{4095}, std::min(cell + 8 * size, table_end)};
  soon.ranges[1] = {code & ~uint64_t{4095}, std::min(code + 2 * size, code_end)};
  __atomic_store_n(&soon.count, arena.units.empty() ? 1 : 2, __ATOMIC_RELEASE);  // (a new one may not be mapped yet)
}

// What the code of the function may look at besides: tables of jumps.
std::span<const std::byte> Space::data_of(Translation& t, AppPc at, size_t size) const {
  if (t.pid == no_process) return constants_of(*t.region, at, size);
  t.data_buffer.resize(size);
  return std::span<const std::byte>(t.data_buffer).first(process::read_code(t.pid, at.value, t.data_buffer));
}

Result<CachePc> Space::translate(AppPc pc, Version version, pid_t pid, rt::Soon* soon) {
  if (CachePc known = find(pc, version)) return known;
  auto begin_time = std::chrono::steady_clock::now();
  TRY(Region* region, find_region(pc, pid));
  if (!named_.empty() && !region->named) region->named = named_.in(region->image);
  AppRange bounds = bounds_of(*region, pc);
  bool stands_alone = region->is_volatile || is_named(*region, pc);
  if (CachePc known = stands_alone ? CachePc{} : find_in_function(pc, bounds, version)) return known;
  auto arena = arena_for(*region, version);
  if (!arena) return fail("the code cache is full");
  Translation& t = translation_;
  t.pc = pc, t.version = version, t.arena = *arena, t.pid = pid, t.region = region, t.bounds = bounds;
  if (soon) tell(*soon, t);
  TRY_VOID(cut_out(t));
  TRY_VOID(plan(t));
  TRY(CachePc entry, lower(t));
  stats_.nanoseconds += static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin_time).count());
  return entry;
}

// The function around the pc, lifted: where its bounds turn out to be wrong, anew.
Result<> Space::cut_out(Translation& t) {
  x86::Function& f = t.function;
  x86::ReadMemory code = [&](AppPc at, size_t size) { return t.code_at(at, size); };
  x86::ReadMemory data = [&](AppPc at, size_t size) { return data_of(t, at, size); };
  auto lift = [&] { x86::lift(t.pc, t.bounds, code, data, {}, f); };
  auto lift_in = [&](AppRange bounds) {
    t.bounds = bounds;
    t.code = code_of(*t.region, bounds, t.pid, t.code_buffer);
    lift();
  };
  auto end_at = [&](AppPc end) {
    t.bounds.end = end;
    lift();
  };
  t.code = code_of(*t.region, t.bounds, t.pid, t.code_buffer);
  if (t.code_at(t.pc, 1).empty()) return fail("its code at {:#x} cannot be read", t.pc.value);
  // Tools would find the code of functions that are not told apart in several of them, and calls that begin in one and end in another.
  bool may_be_several = tool_->has_probes() && is_guess(*t.region, t.pc);
  lift();
  AppPc end = may_be_several ? likely_end(f, t.bounds, t.code) : t.bounds.end;
  if (may_be_several && !t.region->is_volatile && end == t.bounds.end && branches_beyond(f, t.bounds)) {
    lift_in(bounds_of(*t.region, t.pc, large_bounds));
    end = likely_end(f, t.bounds, t.code);
  }
  if (end < t.bounds.end) end_at(end);
  // Control goes on at an instruction that the end cuts in two: for a tool, that is behind the function, as another one.
  if (AppPc cut = cut_instruction(f, t.bounds); tool_->has_probes() && cut.value) end_at(cut);
  x86::BlockId first = f.block_at(t.pc);
  // An instruction that the end of its function cuts in two (a symbol's size is wrong, or control came to the middle of
  // another instruction) is a function of its own.
  bool is_cut = first != x86::no_block && f.insns_of(f.blocks[first])[0].shape->length == 0 &&
                t.bounds.end - t.pc < x86::max_insn_length && t.bounds.end < t.region->range.end;
  if (is_cut) {
    lift_in({t.pc, std::min(t.pc + x86::max_insn_length, t.region->range.end)});
    first = f.block_at(t.pc);
  }
  if (first != x86::no_block && (f.blocks[first].ends != x86::BlockEnd::Undecodable || f.blocks[first].count != 1))
    return {};
  const x86::Shape* shape = first == x86::no_block ? nullptr : f.insns_of(f.blocks[first])[0].shape;
  if (shape && shape->known && shape->uses_gs)
    return fail("its instruction at {:#x} uses %gs in a way that is not supported", t.pc.value);
  return fail(ErrorKind::NoCode, "{:#x} cannot be translated", t.pc.value);
}

namespace {
// Around each system call: see rt/told_calls.h.
void plan_told_calls(const x86::Function& f, instrument::Plan& plan) {
  using instrument::Op, instrument::Where;
  auto call = [](uint32_t routine, AppPc next) {
    return Op{.kind = Op::CallWith,
              .counter = {static_cast<uint32_t>(next.value)},
              .value = routine,
              .callee = {static_cast<uint32_t>(next.value >> 32)}};
  };
  for (x86::BlockId b = 0; b < f.blocks.size(); b++) {
    const x86::Block& block = f.blocks[b];
    if (block.ends != x86::BlockEnd::Syscall) continue;
    plan.insert(Where::Before, block.first + block.count - 1, {call(rt::call_begins_routine, block.end)});
    plan.insert(Where::FallThrough, b, {call(rt::call_ends_routine, block.end)});
  }
}
}  // namespace

Result<> Space::plan(Translation& t) {
  const Region& region = *t.region;
  t.plan.clear();
  x86::ReadMemory code = [&](AppPc at, size_t size) { return t.code_at(at, size); };
  x86::ReadMemory image_code = [&](AppPc at, size_t size) -> std::span<const std::byte> {
    if (!region.range.contains(at)) return {};
    AppRange range{at, std::min(at + static_cast<int64_t>(size), region.range.end)};
    return region.is_pristine ? code_of(region, range, t.pid, t.data_buffer) : data_of(t, at, range.size());
  };
  std::function<AppRange(AppPc)> bounds_at = [&](AppPc at) {
    return region.range.contains(at) ? bounds_of(region, at) : AppRange{at, at};
  };
  std::function<instrument::IsPart(AppPc)> is_part = [&](AppPc at) {
    using instrument::IsPart;
    if (!region.image || region.is_volatile || !region.range.contains(at)) return IsPart::No;
    elf::Vaddr v{at.value - region.bias};
    if (region.image->is_part(v)) return IsPart::Yes;
    if (region.image->has_symbol(v)) return IsPart::No;
    return region.image->has_frame(v) ? IsPart::Perhaps : IsPart::Hole;
  };
  tool_->plan({t.function, region.image_index, region.bias, code, image_code, bounds_at, is_part, region.is_pristine,
               region.is_volatile, region.image.get(), tool_regions_, t.version},
              counters_, t.plan);
  plan_named(t);
  if (tool_->services().system_calls) plan_told_calls(t.function, t.plan);
  if (counters_.size() > rt::max_counters)
    return fail("too many counters: the program is too large for this tool, or --cache-mb too small");
  return {};
}

// Room for code that is made, and numbers for its exits: what is free again, or behind all that there is.
Result<Space::Room> Space::take_room(Arena& arena, size_t size, uint32_t most_exits) {
  arena.used = aligned(arena.used);
  Room room{size, arena.used, arena.free_code.take(static_cast<uint32_t>(size)), most_exits};
  bool has_links = arena.all_links() + most_exits < arena.max_links;
  if (!links_.has_room(arena, (room.free ? 0 : size) + most_exits * instrument::stub_size) || !has_links) {
    if (room.free) arena.free_code.give(*room.free, static_cast<uint32_t>(size));
    return fail("the code cache is full");
  }
  room.first_exit = links_.first_for(arena, most_exits);
  room.has_free_exits = room.first_exit - arena.first_link < arena.all_links();
  if (room.free) arena.used = aligned(*room.free);
  return room;
}

// What is left of it is free for others.
void Space::give_rest(Arena& arena, const Room& room, uint32_t exits) {
  if (room.has_free_exits) arena.free_links.give(room.first_exit + exits, room.most_exits - exits);
  if (!room.free) return;
  arena.free_code.give(static_cast<uint32_t>(arena.used), static_cast<uint32_t>(*room.free + room.size - arena.used));
  arena.used = room.end;
}

Result<CachePc> Space::lower(Translation& t) {
  const x86::Function& f = t.function;
  Arena& arena = arenas_[t.arena];  // (prepare() has made room)
  size_t bound = instrument::size_bound(f, t.plan, arena.base);
  bool needs_all = !t.plan.empty() || f.has_special;  // else lowering asks of rcx only, where the table leads
  x86::Liveness live = needs_all ? x86::liveness(f) : x86::liveness_at_entries(f, x86::RCX);
  TRY(Room room, take_room(arena, aligned(bound + guards_bound(t) + 256), instrument::exits_bound(f, t.plan)));
  x86::ReadMemory code = [&](AppPc at, size_t size) { return t.code_at(at, size); };
  auto known = [&](AppPc a) { return arena.is_volatile && !arena.code.contains(a) ? CachePc{} : find(a, t.version); };
  instrument::CachePlacement placement(versions_[t.version].table_address, room.first_exit, known, t.version);
  instrument::lower(
      {f, live, t.plan, code, arena.memory->mapping.bytes().subspan(arena.used, bound),
       arena.base + static_cast<int64_t>(arena.used), placement, tool_->services().clock, tool_->inline_code()},
      t.lowered);
  auto exits = static_cast<uint32_t>(t.lowered.exits.size());
  stats_.functions++;
  stats_.blocks += f.blocks.size();
  stats_.instructions += f.insns.size();
  stats_.code_bytes += t.lowered.size;
  for (const auto& b : f.blocks) stats_.app_bytes += static_cast<uint64_t>(b.end - b.begin);
  stats_.not_supported += t.lowered.not_supported;
  arena.not_supported += t.lowered.not_supported;
  CHECK(!room.has_free_exits || exits <= room.most_exits);
  CachePc entry = commit(t, room.first_exit);
  live_code_ += units_[live_.back()].room;
  give_rest(arena, room, exits);
  return entry;
}

// The lowered code becomes a unit: known, in the table, linked.
CachePc Space::commit(Translation& t, uint32_t first_exit) {
  const Region& region = *t.region;
  const instrument::Lowered& lowered = t.lowered;
  keep_entries_apart(t);
  Arena& arena = arenas_[t.arena];
  auto& [table, table_address, functions, entries] = versions_[t.version];
  Unit unit{t.pc, t.bounds};
  unit.arena = t.arena;
  unit.offset = static_cast<uint32_t>(arena.used);
  unit.size = lowered.size;
  unit.entry_offset = lowered.entry;
  unit.blocks = lowered.blocks;
  unit.marks = lowered.marks;
  unit.first_exit = first_exit;
  unit.exits = static_cast<uint32_t>(lowered.exits.size());
  arena.used = aligned(arena.used + lowered.size);  // neighbours touch, so that the room of several is one
  unit.room = static_cast<uint32_t>(arena.used) - unit.offset;
  // The table leads straight to the places of a unit, but for volatile code, which is looked at before it is entered; what tools plan
  // for it counts on coming to its entry.
  std::span<const instrument::TableEntry> places = lowered.table;
  if (region.is_volatile && tool_->has_probes()) places = places.first(1);
  unit.table.reserve(places.size());
  for (const auto& p : places) unit.table.push_back(p.app), unit.return_sites += p.is_return_site;
  uint32_t id = new_unit(std::move(unit)), number = first_exit;
  for (instrument::Exit exit : lowered.exits) {
    exit.offset += units_[id].offset;
    if (exit.stub) exit.stub += units_[id].offset;
    if (exit.kind != instrument::Exit::Direct) exit.version = t.version;
    links_.add(arena, number++, {exit, id});
    if (exit.version != t.version) arena.is_keepable = false;  // (other versions are not kept)
  }
  // (Units of volatile code are found by their entries only, and so stand alone as functions.)
  units_[id].previous = std::exchange(functions[region.is_volatile ? t.pc : t.bounds.begin], id + 1);
  if (region.is_volatile) return guard(t, id, places);
  enter_all(id, lowered.table);
  CachePc entry = entries[t.pc] = cache_pc(id, lowered.entry);
  links_.link_waiting(t.pc, t.version, entry);
  expect_calls(t.arena, lowered.exits);
  return entry;
}

void Space::expect_calls(uint32_t arena, std::span<const instrument::Exit> exits) {
  constexpr size_t most = 256;
  if (expected_.size() > most) expected_.erase(expected_.begin(), expected_.end() - most / 2);
  for (const instrument::Exit& e : exits)
    if (e.kind == instrument::Exit::Direct && !e.linked && !e.version) expected_.push_back(e.target);
  growing_ = arena;
}

bool Space::make_page_ahead() {
  if (arenas_.empty()) return false;
  constexpr size_t ahead = 4 * Archive::page;
  Arena& arena = arenas_[growing_];
  arena.made_to = std::max(arena.made_to, arena.used / Archive::page * Archive::page + Archive::page);
  if (arena.made_to < std::min(arena.used + ahead, arena.size)) {
    __atomic_load_n(arena.memory->as<uint8_t>(arena.made_to), __ATOMIC_RELAXED);
    arena.made_to += Archive::page;
    return true;
  }
  while (!expected_.empty()) {
    AppPc pc = expected_.back();
    expected_.pop_back();
    if (arena_of_code(pc) || find(pc, 0)) continue;
    __atomic_load_n(&table_cell(pc, 0), __ATOMIC_RELAXED);
    return true;
  }
  return false;
}

}  // namespace weir::engine
