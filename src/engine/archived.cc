// An image's own arena, and the code of earlier runs in it.
//
//     arena    | code of the archive, in whole pages | code of this run → …
//     mapped   | from the archive's file             | from shared memory
//
// The image's part of the table is mapped from the file, too. Both are read-only for good; where a link or an entry changes,
// the page is copied to shared memory and mapped from there. When that has happened too often, or when the program changes
// the image, the rest follows at once (make_writable), and in the latter case the archive is given up (take_over).

#include <elf.h>

#include <algorithm>

#include "engine/home.h"
#include "engine/space.h"

namespace weir::engine {

namespace {

constexpr size_t page = Archive::page;
// Pages change by the chunk, as to map one takes as long as to copy a few. When many did all follow: mappings are limited.
constexpr uint32_t chunk = 16;
uint32_t many_chunks(const Arena& arena) {
  size_t pages = arena.code_pages.size() + arena.archive->parts().table_pages.size();
  return static_cast<uint32_t>(std::clamp<size_t>(pages / chunk / 4, 64, 4096));
}

// The chunk of page `n`, of so many.
struct Pages {
  uint32_t first, last;
};
Pages chunk_of(uint32_t n, size_t pages) {
  uint32_t first = n / chunk * chunk;
  return {first, static_cast<uint32_t>(std::min<size_t>(first + chunk, pages))};
}

elf::VRange pages_of(const elf::Segment& s) {
  return {{s.vaddr.value & ~(page - 1)}, {(s.vaddr.value + s.file_size + page - 1) & ~(page - 1)}};
}

// The code of an image, from the first segment that has some to the last.
std::optional<elf::VRange> all_code(const elf::Image& image) {
  std::optional<elf::VRange> code;
  for (const elf::Segment& s : image.segments()) {
    if (s.type != PT_LOAD || !(s.flags & PF_X)) continue;
    if (s.flags & PF_W) return {};
    elf::VRange segment = pages_of(s);
    code = code ? elf::VRange{std::min(code->begin, segment.begin), std::max(code->end, segment.end)} : segment;
  }
  return code;
}

uint32_t table_page_of(const Arena& arena, AppPc pc) {
  return static_cast<uint32_t>(static_cast<uint64_t>(pc - arena.code.begin) * 8 / page);
}

uint64_t table_offset(AppPc pc) { return 8 * (pc.value & 0xffffffff); }

const ArchivedPair* find(std::span<const ArchivedPair> pairs, uint32_t app) {
  auto i = std::lower_bound(pairs.begin(), pairs.end(), app, [](const ArchivedPair& p, uint32_t a) { return p.app < a; });
  return i != pairs.end() && i->app == app ? &*i : nullptr;
}

// What a link leads to outside of the archive's own code may be elsewhere in another run: it leads to its stub.
void unlink_outside(std::span<std::byte> code, std::span<const ArchivedExit> exits, int64_t size) {
  for (const ArchivedExit& e : exits) {
    if (e.kind != instrument::Exit::Direct || !e.stub || (e.target >= 0 && e.target < size)) continue;
    auto distance = static_cast<int32_t>(e.stub - (e.offset + 4));
    memcpy(&code[e.offset], &distance, sizeof distance);
  }
}

// Pages of a part of shared memory that were ever written to.
std::vector<bool> pages_in_use(const SharedMemory& memory, uint64_t begin, uint64_t size) {
  std::vector<bool> result(size / page);
  int fd = memory.file.get();
  for (auto at = static_cast<off_t>(begin), end = static_cast<off_t>(begin + size); at < end;) {
    off_t data = lseek(fd, at, SEEK_DATA);
    if (data < 0 || data >= end) break;
    at = std::min(end, lseek(fd, data, SEEK_HOLE));
    for (auto n = (static_cast<uint64_t>(data) - begin) / page; n < (static_cast<uint64_t>(at) - begin) / page; n++)
      result[n] = true;
  }
  return result;
}

}  // namespace

// An image at its home, or at the low addresses that it was linked for, has an arena at a fixed place.
Result<bool> Space::give_own_arena(Region& region) {
  if (!region.image || !region.is_pristine || table_address() != rt::table_base) return false;
  elf::VRange extent = extent_of(*region.image);
  AppRange image{{extent.begin.value + region.bias}, {extent.end.value + region.bias}};
  auto segments = all_code(*region.image);
  if (!segments) return false;
  AppRange code{{segments->begin.value + region.bias}, {segments->end.value + region.bias}};
  if (!code.covers(region.range)) return false;
  CachePc base;
  if (is_home(image.begin)) base = {image.begin.value - home_distance};
  else if (image.end.value <= rt::low_arena_begin && image.begin.value % home_slot_size == 0) base = {rt::low_arena_begin};
  else return false;
  auto known = std::find_if(arenas_.begin(), arenas_.end(), [&](const Arena& a) { return a.base == base; });
  region.arena = static_cast<uint32_t>(known - arenas_.begin());
  if (known != arenas_.end()) return known->code == code;  // it was unmapped, and is back, or it is another part
  auto first_link = static_cast<uint32_t>(image.begin.value);
  auto max_links = static_cast<uint32_t>((image.size() + home_slot_size - 1) / home_slot_size * home_slot_size);
  if (!has_free_links(first_link, max_links) || !is_free(base.value, arena_size, {}) || !claim(base, arena_size))
    return false;
  TRY(region.arena, create_arena(base, arena_size));
  Arena& arena = arenas_[region.arena];
  arena.code = code;
  arena.is_keepable = true;
  arena.first_link = first_link;
  arena.max_links = max_links;
  if (twins_.is_shared(code)) arena.is_keepable = false;
  else open_archive(arena, Archive::open(key_of(*region.image), archive_name(), code));
  for (const elf::Segment& s : region.image->segments())
    if (s.type == PT_LOAD && (s.flags & PF_X)) {
      elf::VRange r = pages_of(s);
      arena.segments.push_back({{r.begin.value + region.bias}, {r.end.value + region.bias}});
    }
  if (arena.segments.size() > 1) write_page();
  return true;
}

bool Space::has_free_links(uint32_t first, uint64_t count) const {
  constexpr uint64_t end = 0xc000'0000;  // see arena_near
  return first + count <= end && arenas_.has_free_links(first, count);
}

// The code of an image of a heap, a private mapping of a file that is written to: guards look whether it is still what it was, in this run
// and in later ones. So its arena is as good as an image's, as long as it lies where it lay: a direct jump out of it is linked in each run.
Result<bool> Space::give_volatile_arena(Region& region, pid_t pid) {
  for (uint32_t i = 0; i < arenas_.size(); i++)
    if (arenas_[i].is_volatile && arenas_[i].code.covers(region.range)) {
      region.arena = i;
      return true;
    }
  constexpr size_t size = 128u << 20;
  auto first_link = static_cast<uint32_t>(region.range.begin.value);
  uint64_t max_links = std::max<uint64_t>(region.range.size(),
                                          1 << 19);  // (numbers are as addresses, so that they are the same in each run)
  if (region.file.id.empty() || tool_->has_probes() || archive_name().empty() || table_address() != rt::table_base ||
      !has_free_links(first_link, max_links) || twins_.is_shared(region.range) ||
      std::ranges::any_of(arenas_, [&](const Arena& a) { return a.code.overlaps(region.range); }))
    return false;
  auto archive = Archive::open(region.file, archive_name(), region.range);
  TRY(auto taken, taken_memory(pid));
  CachePc base = archive ? archive->arena() : find_gap(region.range, size, taken);
  if (!base || !is_free(base.value, size, taken) || !near(base, size, region.range) || !claim(base, size)) return false;
  TRY(region.arena, create_arena(base, size));
  Arena& arena = arenas_[region.arena];
  arena.code = region.range;
  arena.is_keepable = arena.is_volatile = true;
  arena.first_link = first_link;
  arena.max_links = static_cast<uint32_t>(max_links);
  open_archive(arena, std::move(archive));
  return true;
}

void Space::open_archive(Arena& arena, std::shared_ptr<const Archive> archive) {
  if (!archive) return;
  const ArchiveParts& parts = archive->parts();
  if (parts.code.size() + (16u << 20) > arena.size || parts.exits.size() >= arena.max_links) return;
  arena.archive = std::move(archive);
  has_archives_ = true;
  arena.used = parts.code.size();
  arena.code_pages.resize(parts.code.size() / page);
  arena.table_pages.resize(arena.code.size() * 8 / page);
  map_archive(arena);
  stats_.from_archive += parts.units.size();
  stats_.not_supported += arena.not_supported = arena.archive->not_supported();
}

void Space::map_archive(const Arena& arena) {
  const Archive& archive = *arena.archive;
  size_t size = archive.parts().code.size();
  if (size) add_piece({archive.file().get(), archive.code_offset(), arena.base.value, size, PROT_READ | PROT_EXEC, true});
  add_piece({archive.file().get(), archive.table_offset(), table_address() + table_offset(arena.code.begin),
             arena.code.size() * 8, PROT_READ, true});
}

int Space::file_for_others(const Piece& piece) const {
  auto all = given_up_;
  for (const Arena& a : arenas_)
    if (a.archive) all.push_back(a.archive);
  for (const auto& archive : all)
    if (int copy = -1; piece.is_archive && archive->file().get() == piece.file && (copy = archive->copy_for_others()) >= 0)
      return copy;
  return piece.file;
}

const Arena* Space::find_arena_of_code(AppPc pc) const {
  for (const Arena& a : arenas_)
    if (a.archive && a.code.contains(pc)) return &a;
  return nullptr;
}

CachePc Space::find_archived(AppPc pc) const {
  const Arena* arena = arena_of_code(pc);
  if (!arena) return {};
  const ArchivedPair* entry = engine::find(arena->archive->parts().entries, static_cast<uint32_t>(pc - arena->code.begin));
  return entry ? arena->base + entry->offset : CachePc{};
}

CachePc Space::find_archived_block(AppPc pc, AppRange bounds) const {
  const Arena* arena = arena_of_code(pc);
  if (!arena) return {};
  const ArchiveParts& parts = arena->archive->parts();
  auto begin = static_cast<uint32_t>(bounds.begin - arena->code.begin);
  auto function = std::lower_bound(parts.functions.begin(), parts.functions.end(), ArchivedPair{begin, 0});
  for (; function != parts.functions.end() && function->app == begin; ++function) {
    const ArchivedUnit& unit = parts.units[function->offset];
    const ArchivedPair* block =
        engine::find(parts.blocks.subspan(unit.first_block, unit.blocks), static_cast<uint32_t>(pc - arena->code.begin));
    if (block) return arena->base + unit.offset + block->offset;
  }
  return {};
}

// The page of the table that has the entry of `pc`, if it is the archive's.
const std::byte* Space::archived_table_page(const Arena& arena, AppPc pc) const {
  uint32_t n = table_page_of(arena, pc);
  return arena.table_pages[n] ? nullptr : arena.archive->table_page(n).data();
}

// Code at `offset` is about to be changed.
void Space::make_writable(Arena& arena, uint32_t offset) {
  if (!arena.archive || offset / page >= arena.code_pages.size() || arena.code_pages[offset / page]) return;
  auto [first, last] = chunk_of(static_cast<uint32_t>(offset / page), arena.code_pages.size());
  size_t at = first * page, size = (last - first) * page;
  memcpy(arena.memory->mapping.data() + at, arena.archive->parts().code.data() + at, size);
  std::fill(arena.code_pages.begin() + first, arena.code_pages.begin() + last, true);
  add_piece({arena.memory->file.get(), at, arena.base.value + at, size, PROT_READ | PROT_EXEC, false, true});
  if (++arena.changed_chunks == many_chunks(arena)) make_writable(arena);
}

void Space::make_table_writable(Arena& arena, AppPc pc) {
  if (!archived_table_page(arena, pc)) return;
  auto [first, last] = chunk_of(table_page_of(arena, pc), arena.table_pages.size());
  uint64_t begin = table_offset(arena.code.begin), at = begin + first * page;
  const auto& used = arena.archive->parts().table_pages;
  for (auto n = std::ranges::lower_bound(used, first); n != used.end() && *n < last; ++n)
    memcpy(normal().table.mapping.data() + begin + *n * page, arena.archive->table_page(*n).data(), page);
  std::fill(arena.table_pages.begin() + first, arena.table_pages.begin() + last, true);
  add_piece({normal().table.file.get(), at, table_address() + at, (last - first) * page, PROT_READ, false, true});
  if (++arena.changed_chunks == many_chunks(arena)) make_writable(arena);
}

void Space::make_writable(Arena& arena) {
  const ArchiveParts& parts = arena.archive->parts();
  for (size_t n = 0; n < arena.code_pages.size(); n++)
    if (!arena.code_pages[n]) memcpy(arena.memory->mapping.data() + n * page, parts.code.data() + n * page, page);
  arena.code_pages.assign(arena.code_pages.size(), true);
  uint64_t begin = table_offset(arena.code.begin);
  for (uint32_t n : parts.table_pages)
    if (!arena.table_pages[n])
      memcpy(normal().table.mapping.data() + begin + n * page, arena.archive->table_page(n).data(), page);
  arena.table_pages.assign(arena.table_pages.size(), true);
  arena.is_writable = true;
  map_all_changed(arena);
}

// The same, and no process goes on before it has mapped that.
void Space::make_writable_at_once(Arena& arena) {
  if (!arena.archive || arena.is_writable) return;
  size_t before = pieces_.size();
  make_writable(arena);
  for (Piece& piece : std::span(pieces_).subspan(before)) piece.is_change = false;
}

void Space::map_all_changed(const Arena& arena) {
  uint64_t table = table_offset(arena.code.begin);
  if (size_t size = arena.archive->parts().code.size())
    add_piece({arena.memory->file.get(), 0, arena.base.value, size, PROT_READ | PROT_EXEC, false, true});
  add_piece({normal().table.file.get(), table, table_address() + table, arena.code.size() * 8, PROT_READ, false, true});
}

void Space::map_changed_pages(const Arena& arena) {
  uint64_t table = table_offset(arena.code.begin);
  for (size_t n = 0; n < arena.code_pages.size(); n += chunk)
    if (arena.code_pages[n]) {
      auto [first, last] = chunk_of(static_cast<uint32_t>(n), arena.code_pages.size());
      add_piece({arena.memory->file.get(), first * page, arena.base.value + first * page, (last - first) * page,
                 PROT_READ | PROT_EXEC, false, true});
    }
  for (size_t n = 0; n < arena.table_pages.size(); n += chunk)
    if (arena.table_pages[n]) {
      auto [first, last] = chunk_of(static_cast<uint32_t>(n), arena.table_pages.size());
      uint64_t at = table + first * page;
      add_piece({normal().table.file.get(), at, table_address() + at, (last - first) * page, PROT_READ, false, true});
    }
}

// What Space::copy() leaves: archives are shared, but not what was changed in them.
void Space::copy_archived(const Space& from) {
  for (Arena& arena : arenas_) {
    if (!arena.archive) continue;
    const Arena& other = from.arenas_[arenas_.index_of(arena)];
    map_archive(arena);
    for (size_t n = 0; n < arena.code_pages.size(); n++)
      if (arena.code_pages[n])
        memcpy(arena.memory->mapping.data() + n * page, other.memory->mapping.data() + n * page, page);
    uint64_t table = table_offset(arena.code.begin);
    std::vector<bool> in_use = pages_in_use(from.normal().table, table, arena.code.size() * 8);
    for (size_t n = 0; n < in_use.size(); n++)
      if (in_use[n] && arena.table_pages[n])
        memcpy(normal().table.mapping.data() + table + n * page,
               from.normal().table.mapping.data() + table + n * page, page);
    if (!arena.is_writable) map_changed_pages(arena);
    else map_all_changed(arena);
  }
}

void Space::make_all_writable() {
  for (Arena& arena : arenas_)
    if (arena.archive && !arena.is_writable) make_writable(arena);
}

// One unit of volatile code is not what it was: nothing leads there any more. When there were many of them the archive is given up.
void Space::forget_archived_unit(Arena& arena, AppPc pc, CachePc at) {
  constexpr uint32_t many = 64;
  if (++arena.forgotten_units > many) {
    take_over(arenas_.index_of(arena));
    return forget_unit_at(pc, at);
  }
  const ArchiveParts& parts = arena.archive->parts();
  auto next = std::ranges::upper_bound(parts.units, static_cast<uint32_t>(at - arena.base), {}, &ArchivedUnit::offset);
  if (next == parts.units.begin()) return;
  const ArchivedUnit& unit = *std::prev(next);
  AppPc begin = arena.code.begin;
  if (!AppRange{begin + unit.begin, begin + unit.end}.contains(pc)) return;
  CachePc first = arena.base + unit.offset,
          last = arena.base + static_cast<int64_t>(next == parts.units.end() ? parts.code.size() : next->offset);
  auto is_in_unit = [&](CachePc to) { return first <= to && to < last; };
  auto blocks = parts.blocks.subspan(unit.first_block, unit.blocks);
  stats_.flushed_units++;
  for (const ArchivedPair& b : blocks) {
    AppPc app = begin + b.app;
    if (is_in_unit(table_entry(app, 0))) enter_in_table(app, 0, {});
    if (!is_in_unit(find(app, 0))) continue;
    normal().entries[app] = {};
    links_.unlink(app, 0);
  }
  for (uint32_t i = 0; i < parts.exits.size(); i++) {
    const ArchivedExit& e = parts.exits[i];
    if (e.kind != instrument::Exit::Direct || e.target < unit.begin || e.target >= unit.end ||
        !engine::find(blocks, static_cast<uint32_t>(e.target)))
      continue;
    links_.unlink_archived(arena, arena.first_link + i);
  }
}

// The archive's units become units of this run, so that they can be forgotten.
void Space::take_over(uint32_t index) {
  Arena& arena = arenas_[index];
  arena.is_keepable = false;
  if (!arena.archive) return;
  if (!arena.is_writable) make_writable(arena);
  std::shared_ptr<const Archive> archive = arena.archive;
  const ArchiveParts& parts = archive->parts();
  AppPc begin = arena.code.begin;
  auto first = static_cast<uint32_t>(units_.size());
  std::vector<uint32_t> ids;
  for (const ArchivedUnit& u : parts.units) {
    auto id = static_cast<uint32_t>(units_.size());
    Unit unit{begin + u.entry, {begin + u.begin, begin + u.end}, index, u.offset, u.size, u.entry_offset};
    for (const ArchivedPair& b : parts.blocks.subspan(u.first_block, u.blocks))
      unit.blocks.push_back({begin + b.app, b.offset});
    auto marks = parts.marks.subspan(u.first_mark, u.marks);
    unit.marks.assign(marks.begin(), marks.end());
    unit.previous = std::exchange(normal().functions[arena.is_volatile ? unit.entry : unit.bounds.begin], id + 1);
    units_.push_back(std::move(unit));
    live_.push_back(id);
    ids.push_back(id);
  }
  arena.units.insert(arena.units.begin(), ids.begin(), ids.end());
  for (const ArchivedPair& e : parts.entries)
    if (!normal().entries.find(begin + e.app)) normal().entries[begin + e.app] = arena.base + e.offset;
  links_.take_over(arena, first);
  given_up_.push_back(std::exchange(arena.archive, nullptr));
  // The entries in the table: of the last unit of the function around them, or, of volatile code, of the unit whose guards they are.
  for (AppPc pc = begin; pc < arena.code.end; pc += 1) {
    if (pc.value % (page / 8) == 0 &&
        !std::binary_search(parts.table_pages.begin(), parts.table_pages.end(), table_page_of(arena, pc))) {
      pc += static_cast<int64_t>(page / 8) - 1;
      continue;
    }
    if (!table_entry(pc, 0)) continue;
    if (arena.is_volatile) {
      if (uint32_t n = unit_at(table_entry(pc, 0))) units_[n - 1].table.push_back(pc);
      continue;
    }
    auto f = std::upper_bound(parts.functions.begin(), parts.functions.end(),
                              ArchivedPair{static_cast<uint32_t>(pc - begin), UINT32_MAX});
    if (f != parts.functions.begin()) units_[first + std::prev(f)->offset].table.push_back(pc);
  }
}

void Space::translate_all_of(const Space& other) {
  if (archive_name().empty()) return;
  for (size_t i = 0; i < arenas_.size(); i++) {
    const Arena& arena = arenas_[i];
    auto is_same = [&](const Arena& a) { return a.is_keepable && a.base == arena.base && a.code == arena.code; };
    auto same = std::ranges::find_if(other.arenas_, is_same);
    if (!arena.is_keepable || arena.is_volatile || same == other.arenas_.end()) continue;
    for (uint32_t id : same->units) {
      const Unit& unit = other.units_[id];
      const Region* region = region_at(unit.entry);
      if (!unit.dead && region && region->is_pristine && !translate(unit.entry, 0, no_process)) break;
    }
  }
}

size_t Space::to_keep() const {
  size_t units = 0;
  for (const Arena& arena : arenas_)
    if (arena.is_keepable) units += arena.units.size() + (arena.archive ? arena.archive->parts().units.size() : 0);
  return units;
}

void Space::save_archives() {
  for (Arena& arena : arenas_)
    if (arena.is_keepable) save(arena);
}

// Everything in the arena, and everything that leads there.
void Space::save(Arena& arena) {
  std::string name = archive_name();
  const ArchiveParts old = arena.archive ? arena.archive->parts() : ArchiveParts{};
  uint32_t index = arenas_.index_of(arena);
  auto region = std::ranges::find(regions_, index, &Region::arena);
  if (name.empty() || region == regions_.end() ||
      !is_worth_keeping(old.units.size() + arena.units.size(), old.units.size()))
    return;
  AppPc begin = arena.code.begin;
  auto app = [&](AppPc pc) { return static_cast<uint32_t>(pc - begin); };
  std::vector<ArchivedUnit> units(old.units.begin(), old.units.end());
  std::vector<ArchivedPair> functions(old.functions.begin(), old.functions.end()), entries,
      blocks(old.blocks.begin(), old.blocks.end());
  std::vector<instrument::Mark> marks(old.marks.begin(), old.marks.end());
  std::vector<ArchivedExit> exits(old.exits.begin(), old.exits.end());
  for (uint32_t id : arena.units) {
    const Unit& u = units_[id];
    functions.push_back({app(u.bounds.begin), static_cast<uint32_t>(units.size())});
    units.push_back({app(u.entry), app(u.bounds.begin), app(u.bounds.end), u.offset, u.size, u.entry_offset,
                     static_cast<uint32_t>(blocks.size()), static_cast<uint32_t>(u.blocks.size()),
                     static_cast<uint32_t>(marks.size()), static_cast<uint32_t>(u.marks.size())});
    for (const auto& b : u.blocks) blocks.push_back({app(b.app), b.offset});
    marks.insert(marks.end(), u.marks.begin(), u.marks.end());
  }
  std::ranges::copy_if(old.entries, std::back_inserter(entries),
                       [&](const ArchivedPair& e) { return !normal().entries.find(begin + e.app); });
  normal().entries.for_each([&](AppPc pc, CachePc to) {
    if (arena.code.contains(pc) && arena.contains(to)) entries.push_back({app(pc), static_cast<uint32_t>(to - arena.base)});
  });
  for (auto [number, stub] : links_.archived_stubs())
    if (number - arena.first_link < exits.size()) exits[number - arena.first_link].stub = stub;
  for (const LinkSite& l : arena.links) {
    const Unit& u = units_[l.unit];
    bool is_alive = !u.dead && l.exit.offset - u.offset < u.size;  // (numbers and room of volatile code are used again)
    if (is_alive || l.exit.kind != instrument::Exit::Direct)
      exits.push_back({l.exit.target - begin, l.exit.offset, l.exit.stub, l.exit.pops, l.exit.kind, {}});
    else exits.push_back({0, 0, 0, 0, instrument::Exit::Jump, {}});
  }
  std::sort(functions.begin(), functions.end());
  std::sort(entries.begin(), entries.end());
  entries.erase(std::unique(entries.begin(), entries.end()), entries.end());

  std::vector<uint32_t> pages;
  auto page_at = [&](uint32_t n) {
    bool is_archived = arena.archive && !arena.table_pages[n];
    return is_archived ? arena.archive->table_page(n).data()
                       : normal().table.mapping.data() + table_offset(arena.code.begin) + n * page;
  };
  std::vector<bool> in_use = pages_in_use(normal().table, table_offset(begin), arena.code.size() * 8);
  for (uint32_t n : old.table_pages) in_use[n] = true;
  for (uint32_t n = 0; n < in_use.size(); n++)
    if (in_use[n]) pages.push_back(n);
  std::vector<std::byte> code((arena.used + page - 1) / page * page);
  for (size_t n = 0; n < code.size() / page; n++) {
    bool is_archived = n < arena.code_pages.size() && !arena.code_pages[n];
    memcpy(&code[n * page], (is_archived ? old.code.data() : arena.memory->mapping.data()) + n * page, page);
  }
  if (arena.is_volatile) unlink_outside(code, exits, static_cast<int64_t>(arena.code.size()));
  Archive::save(arena.is_volatile ? region->file : key_of(*region->image), name, arena.code, arena.base,
                {units, functions, entries, blocks, marks, exits, pages, code}, arena.not_supported, page_at);
}

}  // namespace weir::engine
