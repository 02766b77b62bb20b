// What a space knows: regions, units, links, places. Translating is in translate.cc.

#include "engine/space.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

namespace weir::engine {

namespace {
constexpr size_t arena_size = 512u << 20;
constexpr uint64_t reach = (uint64_t{2} << 30) - (64u << 20);  // of a 32-bit displacement, with some room

// Can code anywhere in the arena reach anything in the range?
bool near(CachePc base, size_t size, AppRange r) {
  uint64_t low = std::min(base.value, r.begin.value), high = std::max(base.value + size, r.end.value);
  return high - low < reach;
}

// An image has data before and behind its code, which its code refers to.
constexpr uint64_t image_margin = 256u << 20;
}  // namespace

Result<SharedMemory> SharedMemory::create(const char* name, size_t size) {
  SharedMemory m;
  m.file = Fd(memfd_create(name, MFD_CLOEXEC));
  if (!m.file || ftruncate(m.file.get(), static_cast<off_t>(size)))
    return fail_errno("shared memory {} (ulimit -f must allow it)", name);
  void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, m.file.get(), 0);
  if (p == MAP_FAILED) return fail_errno("shared memory {}", name);
  m.mapping = Mapping(p, size);
  return m;
}

Result<std::unique_ptr<Space>> Space::create(std::unique_ptr<instrument::Tool> tool, uint64_t table_address) {
  std::unique_ptr<Space> s(new Space);
  s->tool_ = std::move(tool);
  s->table_address_ = table_address;
  TRY_VOID(s->create_memory());
  return s;
}

Result<> Space::create_memory() {
  static uint64_t last_id = 0;
  TRY(table_, SharedMemory::create("weir-table", rt::table_size));
  TRY(page_, SharedMemory::create("weir-page", rt::space_page_size));
  page_.as<rt::SpacePage>()->id = ++last_id;
  return {};
}

CachePc Space::find(AppPc pc) const {
  const CachePc* known = entries_.find(pc);
  return known ? *known : CachePc{};
}

Region* Space::region_at(AppPc pc) {
  auto i =
      std::upper_bound(regions_.begin(), regions_.end(), pc, [](AppPc a, const Region& r) { return a < r.range.begin; });
  return i != regions_.begin() && (--i)->range.contains(pc) ? &*i : nullptr;
}

Result<Region*> Space::find_region(AppPc pc, pid_t pid) {
  if (Region* r = region_at(pc)) return r;
  TRY(auto all, process::regions(pid));
  for (process::Region& r : all) {
    if (!r.range.contains(pc) || !r.executable || r.path == "[vsyscall]") continue;
    // The kernel joins neighbours: what is known already stays as it is.
    for (const Region& known : regions_) {
      if (known.range.end <= pc && r.range.begin < known.range.end) {
        r.offset += static_cast<uint64_t>(known.range.end - r.range.begin);
        r.range.begin = known.range.end;
      }
      if (known.range.begin > pc) r.range.end = std::min(r.range.end, known.range.begin);
    }
    if (may_add && !may_add(r)) return fail("parted");
    for (const Region& known : regions_) {
      uint64_t a = r.range.begin.value & 0xffffffff, b = known.range.begin.value & 0xffffffff;
      if (a < b + known.range.size() && b < a + r.range.size())
        return fail("{:#x} and {:#x}: two mappings of code have the same low 32 bits", r.range.begin.value,
                    known.range.begin.value);
    }
    TRY(uint32_t arena, arena_for(r.range, all));
    TRY(Region * added, add_region(r, pid));
    added->arena = arena;
    return added;
  }
  if (all.empty()) return fail("its memory map cannot be read");
  return std::unexpected(Error{fmt::format("{:#x} is not executable", pc.value), no_code});
}

namespace {
// A page that was written to may still be what it was: injection puts a system call there, and takes it away again.
bool is_as_in_file(pid_t pid, const Region& region) {
  auto pages = process::private_pages(pid, region.range);
  if (!pages || pages->size() > 16) return false;
  auto file = region.image->bytes();
  std::byte bytes[4096];
  for (AppPc page : *pages) {
    uint64_t offset = region.offset + static_cast<uint64_t>(page - region.range.begin);
    if (offset > file.size() || process::read(pid, page.value, bytes) != sizeof bytes) return false;
    if (memcmp(bytes, file.data() + offset, std::min<size_t>(sizeof bytes, file.size() - offset))) return false;
  }
  return true;
}
}  // namespace

Result<Region*> Space::add_region(const process::Region& r, pid_t pid) {
  Region region{r.range, r.offset, r.inode, nullptr, 0, 0, 0, nullptr, false, r.writable || r.shared};
  std::string name = r.path.empty() ? "[anonymous]" : r.path;
  if (auto image = open_image(pid, r)) {
    region.image = *image;
    region.is_pristine = !region.is_volatile && r.inode && is_as_in_file(pid, region);
    if (region.is_pristine && table_address_ == rt::table_base)
      region.archive = Archive::open(*region.image, tool_->archive_name());
    // By the executable segment that the mapping's first page holds a part of: segments may share a page of the file.
    for (const elf::Segment& x : region.image->segments())
      if (x.type == PT_LOAD && (x.flags & PF_X) && r.offset >= (x.offset & ~uint64_t{4095}) &&
          r.offset < x.offset + x.file_size)
        region.bias = r.range.begin.value - (r.offset - x.offset + x.vaddr.value);
  }
  auto known = std::find(images_.begin(), images_.end(), name);
  region.image_index = static_cast<uint32_t>(known - images_.begin());
  if (known == images_.end()) images_.push_back(name);
  auto at = std::upper_bound(regions_.begin(), regions_.end(), r.range.begin,
                             [](AppPc a, const Region& x) { return a < x.range.begin; });
  Region* added = &*regions_.insert(at, std::move(region));
  write_page();
  return added;
}

void Space::write_page() {
  auto* page = page_.as<volatile rt::SpacePage>();
  page->version = page->version + 1;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  page->count = static_cast<uint32_t>(regions_.size());
  for (size_t i = 0; i < std::min<size_t>(regions_.size(), rt::max_ranges); i++) {
    page->ranges[i].begin = regions_[i].range.begin.value;
    page->ranges[i].end = regions_[i].range.end.value;
  }
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  page->version = page->version + 1;
}

// An arena that the region's code can live in; a new one in a gap near it, if there is none.
Result<uint32_t> Space::arena_for(AppRange range, std::span<const process::Region> taken) {
  for (uint32_t i = 0; i < arenas_.size(); i++)
    if (near(arenas_[i].base, arenas_[i].size, range) && arenas_[i].used + (16u << 20) < arenas_[i].size) return i;
  Arena arena;
  arena.size = arena_size;
  auto is_free = [&](uint64_t begin) {
    if (begin < 0x10000 || begin + arena_size >= uint64_t{1} << 47) return false;
    if (begin < rt::table_base + rt::table_size && begin + arena_size > rt::table_base) return false;
    AppRange r{{begin}, {begin + arena_size}};
    for (const process::Region& t : taken)
      if (t.range.overlaps(r)) return false;
    return std::none_of(arenas_.begin(), arenas_.end(),
                        [&](const Arena& a) { return a.base.value < r.end.value && begin < a.base.value + a.size; });
  };
  // Below the images, at first with room for more images between; if possible in the same 4 GiB as the region, which
  // makes calls cheaper, and keeps archived code usable.
  std::vector<uint64_t> candidates;
  if (range.end.value < rt::low_arena_begin) candidates.push_back(rt::low_arena_begin);
  constexpr uint64_t step = 64u << 20;
  for (uint64_t distance = 1024u << 20; distance + arena_size + image_margin < reach; distance += step)
    candidates.push_back((range.begin.value - distance - arena_size) & ~(step - 1));
  for (uint64_t distance = 1024u << 20; distance >= step; distance -= step)
    candidates.push_back((range.begin.value - distance - arena_size) & ~(step - 1));
  for (uint64_t distance = 1024u << 20; distance >= step; distance -= step)
    candidates.push_back((range.end.value + distance + step) & ~(step - 1));
  auto same_half = [&](uint64_t c) {
    return c >> 32 == range.begin.value >> 32 && (c + arena_size - 1) >> 32 == range.end.value >> 32;
  };
  std::stable_partition(candidates.begin(), candidates.end(), same_half);
  auto free = std::find_if(candidates.begin(), candidates.end(),
                           [&](uint64_t c) { return is_free(c) && near({c}, arena_size, range); });
  if (free == candidates.end()) return fail("no room for a code cache near {:#x}", range.begin.value);
  arena.base = {*free};
  TRY(arena.memory, SharedMemory::create("weir-cache", arena_size));
  if (map_arena) TRY_VOID(map_arena(arena));
  arenas_.push_back(std::move(arena));
  return static_cast<uint32_t>(arenas_.size() - 1);
}

Result<std::vector<uint32_t>> Space::cover(std::span<const process::Region> regions) {
  size_t before = arenas_.size();
  for (const process::Region& r : regions)
    if (r.executable && r.path != "[vsyscall]") TRY_VOID(arena_for(r.range, regions));
  std::vector<uint32_t> added;
  for (size_t i = before; i < arenas_.size(); i++) added.push_back(static_cast<uint32_t>(i));
  return added;
}

// A block that was not known as a target of indirect transfers gets an entry that takes rcx back.
void Space::enter_indirect_target(AppPc pc, CachePc to) {
  const Region* region = region_at(pc);
  if (table_entry(pc) || !region || region->is_volatile) return;
  for (Arena& a : arenas_) {
    if (to < a.base || to >= a.base + static_cast<int64_t>(a.used)) continue;
    if (a.used + 32 > a.size) return;
    CachePc entry = a.base + static_cast<int64_t>(a.used);
    instrument::write_table_entry(a.memory.mapping.bytes().subspan(a.used, 32), entry, to);
    a.used += 32;
    if (uint32_t* last = functions_.find(bounds_of(*region, pc).begin); last && *last)
      units_[*last - 1].table.push_back(pc);
    enter_in_table(pc, entry);
    return;
  }
}

Space::Place Space::where(CachePc pc) const {
  for (const Arena& a : arenas_) {
    if (pc < a.base || pc >= a.base + static_cast<int64_t>(a.size)) continue;
    auto offset = static_cast<uint32_t>(pc - a.base);
    auto u = std::upper_bound(a.units.begin(), a.units.end(), offset,
                              [&](uint32_t o, uint32_t id) { return o < units_[id].offset; });
    if (u == a.units.begin()) break;
    const Unit& unit = units_[*--u];
    uint32_t in_unit = offset - unit.offset;
    auto m = std::upper_bound(unit.marks.begin(), unit.marks.end(), in_unit,
                              [](uint32_t o, const instrument::Mark& x) { return o < x.offset; });
    if (m == unit.marks.begin()) return {rt::Place::Middle, unit.entry, 0, 0, pc};
    --m;
    using instrument::Mark;
    AppPc app = unit.bounds.begin + m->app;
    if (m->kind == Mark::Run) return {rt::Place::Exact, app + (in_unit - m->offset), 0, 0, pc};
    bool exact = m->kind == Mark::Exact && m->offset == in_unit;
    return {exact ? rt::Place::Exact : rt::Place::Middle, app, m->restore, m->spilled, a.base + unit.offset + m->resume};
  }
  return {rt::Place::NotCache, {pc.value}, 0, 0, {}};
}

void Space::save_archives() {
  for (Region& r : regions_)
    if (r.archive) r.archive->save();
}

bool Space::knows(AppRange range) const {
  return std::any_of(regions_.begin(), regions_.end(), [&](const Region& r) { return r.range.overlaps(range); });
}

void Space::forget(AppRange range) {
  std::vector<Region> kept;
  for (Region& r : regions_) {
    if (!r.range.overlaps(range)) {
      kept.push_back(r);
      continue;
    }
    Region rest = r;
    if (r.range.begin < range.begin) rest.range = {r.range.begin, range.begin}, kept.push_back(rest);
    if (range.end < r.range.end) {
      rest.range = {range.end, r.range.end};
      rest.offset += static_cast<uint64_t>(range.end - r.range.begin);
      kept.push_back(rest);
    }
  }
  regions_ = std::move(kept);
  write_page();
  std::erase_if(live_, [&](uint32_t id) {
    if (!units_[id].dead && units_[id].bounds.overlaps(range)) retire(id);
    return units_[id].dead;
  });
}

void Space::forget_entry(AppPc pc) {
  const uint32_t* last = functions_.find(pc);
  for (uint32_t n = last ? *last : 0; n; n = units_[n - 1].previous)
    if (!units_[n - 1].dead && units_[n - 1].entry == pc) retire(n - 1);
}

// Nothing leads to the unit any more. A thread that is in it stays there until it leaves.
void Space::retire(uint32_t id) {
  Unit& unit = units_[id];
  unit.dead = true;
  stats_.flushed_units++;
  for (AppPc pc : unit.table) enter_in_table(pc, {});
  for (const auto& b : unit.blocks) {
    if (CachePc* entry = entries_.find(b.app)) *entry = {};
    unlink(b.app);
  }
}

// The displacement of a link is aligned within a cache line, so that others see the old or the new one.
void Space::link(uint32_t id, CachePc to) {
  LinkSite& s = links_[id];
  const Unit& unit = units_[s.unit];
  CachePc at = cache_pc(s.unit, s.exit.offset);
  int64_t distance = to - (at + 4);
  if (distance != static_cast<int32_t>(distance) || unit.dead) return;
  auto* displacement = arenas_[unit.arena].memory.as<int32_t>(unit.offset + s.exit.offset);
  __atomic_store_n(displacement, static_cast<int32_t>(distance), __ATOMIC_RELEASE);
  s.exit.linked = true;
}

void Space::link_waiting(AppPc target, CachePc to) {
  const uint32_t* last = sites_.find(target);
  for (uint32_t n = last ? *last : 0; n; n = links_[n - 1].previous)
    if (!links_[n - 1].exit.linked) link(n - 1, to);
}

void Space::unlink(AppPc target) {
  uint32_t* place = sites_.find(target);  // of the number of the next site; those of dead units are taken out
  while (place && *place) {
    uint32_t id = *place - 1;
    LinkSite& s = links_[id];
    Unit& unit = units_[s.unit];
    if (unit.dead) {
      *place = s.previous;
      continue;
    }
    place = &s.previous;
    if (!s.exit.linked) continue;
    Arena& arena = arenas_[unit.arena];
    CachePc stub = cache_pc(s.unit, s.exit.stub);
    if (!s.exit.stub) {
      CHECK(arena.used + instrument::stub_size <= arena.size);  // it was linked from the start: it gets a stub now
      instrument::write_stub(arena.memory.mapping.bytes().subspan(arena.used, 32), id);
      stub = arena.base + static_cast<int64_t>(arena.used);
      arena.used += 32;
    }
    link(id, stub);
    s.exit.linked = false;
  }
}

Result<std::unique_ptr<Space>> Space::copy() const {
  std::unique_ptr<Space> s(new Space);
  s->tool_ = tool_->copy();
  s->counters_ = counters_;
  s->table_address_ = table_address_;
  TRY_VOID(s->create_memory());
  s->regions_ = regions_;
  s->write_page();
  s->images_ = images_;
  s->units_ = units_;
  s->live_ = live_;
  s->functions_ = functions_;
  s->entries_ = entries_;
  s->sites_ = sites_;
  s->links_ = links_;
  s->stats_ = {};
  for (const Arena& a : arenas_) {
    Arena c{a.base, a.size, a.used, {}, a.units};
    TRY(c.memory, SharedMemory::create("weir-cache", a.size));
    memcpy(c.memory.mapping.data(), a.memory.mapping.data(), a.used);
    s->arenas_.push_back(std::move(c));
  }
  for (const Unit& u : units_)
    if (!u.dead)
      for (AppPc pc : u.table) s->table_entry(pc) = const_cast<Space*>(this)->table_entry(pc);
  return s;
}

Result<std::shared_ptr<elf::Image>> open_image(pid_t pid, const process::Region& region) {
  struct Key {
    dev_t dev;
    ino_t inode;
    timespec changed;
    bool operator==(const Key& o) const {
      return dev == o.dev && inode == o.inode && changed.tv_sec == o.changed.tv_sec && changed.tv_nsec == o.changed.tv_nsec;
    }
  };
  static std::vector<std::pair<Key, std::shared_ptr<elf::Image>>> opened;
  if (region.path == "[vdso]") {
    std::vector<std::byte> bytes(region.range.size());
    process::read(pid, region.range.begin.value, bytes);
    TRY(auto image, elf::Image::from_memory(std::move(bytes), region.path));
    return std::shared_ptr<elf::Image>(std::move(image));
  }
  if (region.inode == 0) return fail("anonymous");
  auto open_file = [&](const std::string& path, struct stat& st) {
    Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    return fd && fstat(fd.get(), &st) == 0 && st.st_ino == region.inode ? std::move(fd) : Fd();
  };
  struct stat st{};
  Fd fd = open_file(region.path, st);
  if (!fd) fd = open_file(fmt::format("/proc/{}/root{}", pid, region.path), st);
  if (!fd)
    fd = open_file(fmt::format("/proc/{}/map_files/{:x}-{:x}", pid, region.range.begin.value, region.range.end.value), st);
  if (!fd) return fail("{}: cannot be opened", region.path);
  Key key{st.st_dev, st.st_ino, st.st_mtim};
  for (auto& [k, image] : opened)
    if (k == key) return image;
  constexpr size_t enough = 256;
  if (opened.size() >= enough) opened.erase(opened.begin());
  TRY(auto image, elf::Image::open(std::move(fd), region.path));
  opened.emplace_back(key, std::move(image));
  return opened.back().second;
}

}  // namespace weir::engine
