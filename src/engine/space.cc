// What a space knows: regions, units, links, places. Translating is in translate.cc.

#include "engine/space.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "engine/regions.h"

namespace weir::engine {

namespace {
constexpr size_t smallest_arena = 16u << 20;
constexpr int64_t stack_growth = 128u << 20;  // the kernel keeps as much free
// Numbers of exits: those of images at their homes are below.
constexpr uint32_t first_common_link = 0xC000'0000, common_links = 1 << 23, max_common_arenas = 128,
                   many_common_arenas = 112;  // others are far away
constexpr AppRange far_arenas = {{rt::far_arenas_begin}, {rt::runtime_base}};
constexpr AppRange vsyscall = {{0xffff'ffff'ff60'0000}, {0xffff'ffff'ff60'1000}};
constexpr uint64_t reach = (uint64_t{2} << 30) - (64u << 20);  // of a 32-bit displacement, with some room

// For nearly any function.
bool has_much_room(const Arena& arena) {
  return arena.size - arena.used >= std::clamp<size_t>(arena.size / 2, smallest_arena / 2, 64u << 20);
}

// An image has data before and behind its code, which its code refers to.
constexpr uint64_t image_margin = 256u << 20;
}  // namespace

// What a tool publishes has room from the start (base/published.h): much, where addresses are short.
Result<std::unique_ptr<Space>> Space::create_empty(const MakeTool& make_tool, const Takings& takings) {
  try {
    std::unique_ptr<Space> s(new Space);
    s->tool_ = make_tool();
    s->named_.ask(*s->tool_);
    s->takings_ = takings;
    return s;
  } catch (const std::bad_alloc&) {
    return fail("there is no room for what is counted (ulimit -v must allow it)");
  }
}

Result<std::unique_ptr<Space>> Space::create(const MakeTool& make_tool, const Takings& takings,
                                             std::span<const process::Region> taken, bool keeps_off_low) {
  auto is_free = [&](uint64_t begin) {
    AppRange table{{begin}, {begin + rt::table_size}};
    return std::ranges::none_of(taken, [&](const process::Region& r) { return r.range.overlaps(table); });
  };
  bool low = !keeps_off_low && is_free(rt::table_base);
  if (!low && !is_free(rt::high_table_base)) return fail("it has no room for weir's table");
  TRY(auto s, create_empty(make_tool, takings));
  s->choose_tables(low ? rt::table_base : rt::high_table_base, [&](AppRange table) { return is_free(table.begin.value); });
  std::vector<AppRange> in_use;
  for (const process::Region& r : taken)
    in_use.push_back({r.range.begin + -(r.path == "[stack]" ? stack_growth : 0), r.range.end});
  for (const Translated& v : s->versions_) in_use.push_back({{v.table_address}, {v.table_address + rt::table_size}});
  TRY(s->tool_regions_, place_regions(s->tool_->services().regions, std::move(in_use)));
  TRY(s->twins_, Twins::create());
  TRY_VOID(s->create_memory());
  s->note_code(vsyscall);
  return s;
}

// That of version 0 lies at `first`, the others above, where look-ups are longer.
void Space::choose_tables(uint64_t first, const std::function<bool(AppRange)>& is_free) {
  CHECK(tool_->versions() >= 1 && tool_->versions() <= rt::max_versions);
  versions_.clear();
  versions_.push_back({.table_address = first});
  for (uint64_t at = rt::high_table_base; versions_.size() < tool_->versions(); at += rt::table_size)
    if (at != first && is_free({{at}, {at + rt::table_size}})) versions_.push_back({.table_address = at});
}

Result<> Space::create_memory() {
  static uint64_t last_id = 0;
  TRY(page_, SharedMemory::create("weir-page", rt::space_page_size));
  add_piece({page_.file.get(), 0, rt::space_base, rt::space_page_size, PROT_READ, false});  // (first: see Server::hello)
  auto* page = page_.as<rt::SpacePage>();
  for (size_t i = 0; i < versions_.size(); i++) {
    Translated& v = versions_[i];
    TRY(v.table, SharedMemory::create("weir-table", rt::table_size));
    add_piece({v.table.file.get(), 0, v.table_address, rt::table_size, PROT_READ, false});
    tell_own({{v.table_address}, {v.table_address + rt::table_size}});
    page->tables[i] = v.table_address;
  }
  page->own_address_space = rt::own_address_space + (versions_.size() - 1) * rt::table_size;
  add_piece({twins_.file(), 0, rt::twins_base, rt::twins_size, PROT_READ, false});
  page->id = ++last_id;
  tell_own({{rt::blocks_base}, {rt::blocks_base + rt::blocks_size}});
  tell_regions();
  return {};
}

void Space::tell_regions() {
  auto regions = tool_->services().regions;
  auto* page = page_.as<rt::SpacePage>();
  page->regions_size = size_of(regions);
  for (size_t i = 0; i < regions.size(); i++) {
    page->tool_regions[i] = {tool_regions_[i].begin.value, tool_regions_[i].end.value};
    page->copies_regions |= is_copied_by_weir(regions[i]);
    tell_own(whole(regions[i], tool_regions_[i]));
  }
}

bool Space::has_tool_region_in(AppRange range) const {
  return std::ranges::any_of(tool_regions_, [&](AppRange r) { return r.overlaps(range); });
}

CachePc Space::find(AppPc pc, Version version) const {
  const CachePc* known = versions_[version].entries.find(pc);
  return known ? *known : version ? CachePc{} : find_archived(pc);
}

Region* Space::region_at(AppPc pc) {
  auto i =
      std::upper_bound(regions_.begin(), regions_.end(), pc, [](AppPc a, const Region& r) { return a < r.range.begin; });
  return i != regions_.begin() && (--i)->range.contains(pc) ? &*i : nullptr;
}

namespace {
constexpr size_t enough_links = 1 << 18;  // for nearly any function
bool has_enough(const Arena& arena) { return has_much_room(arena) && arena.all_links() + enough_links <= arena.max_links; }
}  // namespace

// Where code of the region is put: those of other versions than 0 have no arenas that are a region's own.
std::optional<uint32_t> Space::arena_for(const Region& region, Version version) const {
  if (!version) return region.arena;
  auto is_near = [&](const Arena& a) { return has_enough(a) && near(a.base, a.size, region.range); };
  auto is_far = [](const Arena& a) { return has_enough(a) && far_arenas.contains({a.base.value}); };
  auto found = find_common_arena(version, is_near);
  return found ? found : find_common_arena(version, is_far);
}

bool Space::prepare(AppPc pc, Version version, pid_t pid, bool may_grow) {
  auto region = find_region(pc, pid, may_grow);
  if (!region) return region.error().kind != ErrorKind::WouldChange;
  auto index = arena_for(**region, version);
  if (index && has_enough(arenas_[*index])) return true;
  if (!may_grow) return false;
  if (!version) arenas_[*index].is_keepable = false;
  auto other = arena_near((*region)->range, version, pid);
  if (other && !version) (*region)->arena = *other;
  return true;
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

// All its segments of code: they have one archive.
bool is_image_as_in_file(pid_t pid, const Region& region) {
  constexpr uint64_t page = 4096;
  return is_as_in_file(pid, region) && std::ranges::all_of(region.image->segments(), [&](const elf::Segment& s) {
           if (s.type != PT_LOAD || !(s.flags & PF_X)) return true;
           uint64_t begin = s.vaddr.value & ~(page - 1), end = (s.vaddr.value + s.file_size + page - 1) & ~(page - 1);
           Region part = region;
           part.range = {{begin + region.bias}, {end + region.bias}};
           part.offset = s.offset & ~(page - 1);
           return part.range == region.range || is_as_in_file(pid, part);
         });
}

// A program that watches the pages of its heap's image protects them one by one, and it is one mapping all the same.
process::Region with_neighbours(process::Region r, std::span<const process::Region> all) {
  auto is_part = [&](const process::Region& x) {
    return r.inode && x.inode == r.inode && x.executable && !x.shared && !r.shared;
  };
  auto follows = [](const process::Region& a, const process::Region& b) {
    return a.range.end == b.range.begin && a.offset + a.range.size() == b.offset;
  };
  process::Region whole = r;
  for (const process::Region& x : all)
    if (is_part(x) && follows(whole, x)) whole.range.end = x.range.end, whole.writable |= x.writable;
  for (size_t i = all.size(); i-- > 0;)
    if (is_part(all[i]) && follows(all[i], whole))
      whole.range.begin = all[i].range.begin, whole.offset = all[i].offset, whole.writable |= all[i].writable;
  return whole.writable ? whole : r;
}

// What a private mapping of a file is known by. (Guards look at its code, so this need not be sure.)
ArchiveKey key_of(pid_t pid, const process::Region& r) {
  struct stat st;
  if (!r.inode || r.shared || stat(fmt::format("/proc/{}/root{}", pid, r.path).c_str(), &st) || st.st_ino != r.inode)
    return {};
  return {fmt::format("file-{:x}-{:x}", st.st_ino, r.offset), st.st_size, st.st_ctim};
}
}  // namespace

Result<Region*> Space::find_region(AppPc pc, pid_t pid, bool may_grow) {
  if (Region* r = region_at(pc)) return r;
  TRY(auto all, process::regions(pid));
  for (process::Region& r : all) {
    if (!r.range.contains(pc) || !r.executable || r.path == "[vsyscall]" || is_own(pc)) continue;
    auto image = symbols::open_image(pid, r);
    if (!image) r = with_neighbours(r, all);
    // The kernel joins neighbours: what is known already stays as it is.
    for (const Region& known : regions_) {
      if (known.range.end <= pc && r.range.begin < known.range.end) {
        r.offset += static_cast<uint64_t>(known.range.end - r.range.begin);
        r.range.begin = known.range.end;
      }
      if (known.range.begin > pc) r.range.end = std::min(r.range.end, known.range.begin);
    }
    // An arena reaches all of a region: of more it is the part around.
    constexpr uint64_t large = 512u << 20, window = large / 2;
    if (r.range.size() > large) {
      AppRange around{{pc.value & ~(window - 1)}, {(pc.value & ~(window - 1)) + window}};
      AppPc begin = std::max(r.range.begin, around.begin);
      r.offset += static_cast<uint64_t>(begin - r.range.begin);
      r.range = {begin, std::min(r.range.end, around.end)};
    }
    if (!may_grow) return fail(ErrorKind::WouldChange, "{:#x} is in memory that is not known yet", pc.value);
    if (!has_table_for(r.range))
      return fail("code at {:#x}, whose place in weir's table is memory of the program now", r.range.begin.value);
    Region* added = add_region(r, image ? *image : nullptr, false);
    added->is_pristine = added->image && !added->is_volatile && r.inode && is_image_as_in_file(pid, *added);
    if (added->is_volatile) added->file = key_of(pid, r);
    TRY_VOID(find_room(*added, pid));
    return added;
  }
  if (all.empty()) return fail("its memory map cannot be read");
  return fail(ErrorKind::NoCode, "{:#x} is not executable", pc.value);
}

Result<> Space::know(AppPc pc, pid_t pid) {
  TRY_VOID(find_region(pc, pid));
  return {};
}

void Space::add_image(const std::string& name) {
  images_.push_back(name);
  image_names_.append({name.c_str(), name.size() + 1});
  image_names_.publish();
}

void Space::adopt() {
  image_names_.adopt();
  images_.clear();
  for (const char* name = image_names_.begin(); name < image_names_.end(); name += images_.back().size() + 1)
    images_.emplace_back(name);
  counters_.allocate(rt::max_counters -
                     std::min(counters_.size(), rt::max_counters));  // (what was handed out in the end is not known)
  tool_->adopt();
}

Region* Space::add_region(const process::Region& r, std::shared_ptr<elf::Image> image, bool is_pristine) {
  Region region{r.range, r.offset, std::move(image)};
  region.is_volatile = r.writable || r.shared;
  region.is_readable = r.readable || r.writable;  // (as far as the processor is concerned)
  region.is_pristine = is_pristine;
  std::string name = r.path.empty() ? "[anonymous]" : r.path;
  if (region.image) region.bias = symbols::bias_of(r, *region.image);
  auto known = std::find(images_.begin(), images_.end(), name);
  region.image_index = static_cast<uint32_t>(known - images_.begin());
  if (known == images_.end()) add_image(name);
  auto at = std::upper_bound(regions_.begin(), regions_.end(), r.range.begin,
                             [](AppPc a, const Region& x) { return a < x.range.begin; });
  note_code({r.range.begin + -(r.path == "[stack]" ? stack_growth : 0), r.range.end});
  Region* added = &*regions_.insert(at, std::move(region));
  write_page();
  return added;
}

Result<> Space::add(const process::Region& r, std::shared_ptr<elf::Image> image, pid_t pid) {
  Region* added = add_region(r, std::move(image), r.inode && !r.writable && !r.shared);
  return find_room(*added, pid);
}

// A region is known only if there is room for its code.
Result<> Space::find_room(Region& region, pid_t pid) {
  auto look = [&]() -> Result<> {
    TRY(bool own, region.is_volatile ? give_volatile_arena(region, pid) : give_own_arena(region));
    if (own) return {};
    TRY(region.arena, arena_near(region.range, 0, pid));
    return {};
  };
  auto found = look();
  if (!found) {
    regions_.erase(regions_.begin() + (&region - regions_.data()));
    write_page();
  }
  return found;
}

bool Space::has_room_for(AppRange range) const {
  auto is_other = [&](AppRange p) { return p != range && share_low_halves(p, range); };
  return may_add(range) && has_table_for(range) && std::ranges::none_of(promised_, is_other);
}

void Space::promise(AppRange range) {
  if (std::find(promised_.begin(), promised_.end(), range) == promised_.end()) promised_.push_back(range);
}

Result<> Space::reserve_near(AppRange range, pid_t pid) {
  TRY_VOID(arena_near(range, 0, pid));
  return {};
}

// Entries of what has become a twin are found by their whole address from now on. (A thread that has read one already goes to the right place:
// nobody could go to the other before.)
bool Space::note_code(AppRange range) {
  if (twins_.covers(range)) return true;
  for (const LowRange& low : twins_.add(range)) empty_cells(low);
  write_code();
  return twins_.code().size() <= long_list_;
}

void Space::note_no_code(AppRange range) {
  for (const LowRange& low : twins_.remove(range))
    for (auto [pc, version, to] : twins_.take(low)) enter_in_table(pc, version, to);
  write_code();
}

void Space::find_code(pid_t pid) {
  auto all = process::regions(pid);
  if (!all) return;
  AppPc at{0};  // (what is executable still must not stop being a twin for a moment)
  for (const process::Region& r : *all) {
    if (!r.executable || r.range.begin >= vsyscall.begin) continue;
    note_code(r.range);
    if (at < r.range.begin) note_no_code({at, r.range.begin});
    at = r.range.end;
  }
  note_no_code({at, {uint64_t{1} << 47}});
  long_list_ = std::max<size_t>(rt::max_code, 2 * twins_.code().size());
}

void Space::write_code() {
  auto* page = page_.as<volatile rt::SpacePage>();
  page->version = page->version + 1;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  const auto& code = twins_.code();
  page->code_count = static_cast<uint32_t>(code.size());
  for (size_t i = 0; i < std::min<size_t>(code.size(), rt::max_code); i++) {
    page->code[i].begin = code[i].begin.value;
    page->code[i].end = code[i].end.value;
  }
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  page->version = page->version + 1;
}

void Space::write_page() {
  std::vector<AppRange> known = known_code();
  auto* page = page_.as<volatile rt::SpacePage>();
  page->version = page->version + 1;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  page->count = static_cast<uint32_t>(known.size());
  for (size_t i = 0; i < std::min<size_t>(known.size(), rt::max_ranges); i++) {
    page->ranges[i].begin = known[i].begin.value;
    page->ranges[i].end = known[i].end.value;
  }
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  page->version = page->version + 1;
}

// An arena that the region's code can live in; a new one in a gap near it, if there is none. Where the program leaves no gap it is far away:
// operands relative to rip are written otherwise there, and links out of it go over jumps to any address.
std::optional<uint32_t> Space::find_common_arena(Version version, const std::function<bool(const Arena&)>& may_hold) const {
  auto found = std::ranges::find_if(arenas_, [&](const Arena& a) {
    return !a.code.size() && a.version == version && has_much_room(a) && may_hold(a);
  });
  if (found == arenas_.end()) return {};
  return arenas_.index_of(*found);
}

Result<uint32_t> Space::arena_near(AppRange range, Version version, pid_t pid) {
  auto find = [&](auto may_hold) { return find_common_arena(version, may_hold); };
  if (auto known = find([&](const Arena& a) { return near(a.base, a.size, range); })) return *known;
  bool has_many = arenas_.count_common() >= many_common_arenas;
  TRY(auto taken, taken_memory(pid));
  for (size_t size = arena_size; size >= smallest_arena && !has_many; size /= 2)
    if (CachePc gap = find_gap(range, size, taken); gap && claim(gap, size))
      return create_common_arena(gap, size, version);
  if (auto known = find([&](const Arena& a) { return far_arenas.contains({a.base.value}); })) return *known;
  for (CachePc at{far_arenas.begin.value}; at.value < far_arenas.end.value; at += arena_size)
    if (is_free(at.value, arena_size, taken) && claim(at, arena_size))
      return create_common_arena(at, arena_size, version);
  return fail("no room for a code cache near {:#x}", range.begin.value);
}

// What there is of the program's, and will be at once.
Result<std::vector<process::Region>> Space::taken_memory(pid_t pid) const {
  std::vector<AppRange> takings = takings_();  // (first: it may be there by the time we look)
  TRY(auto taken, process::regions(pid));
  for (const AppRange& range : takings) taken.push_back({.range = range});
  return taken;
}

// Keeps the program from changing what is mapped in [base, base + size) from now on. False: a thread is about to.
//
// A thread writes what it will take (rt::Taking), then reads the claim; we write the claim, then read what threads will take. So one of the
// two sees the other. A thread that sees the claim asks, and is answered when it is settled. What the kernel has given to others there
// meanwhile stays: the arena replaces nothing when it is mapped, which is before it holds code, and is given up then.
bool Space::claim(CachePc base, size_t size) {
  AppRange range{{base.value}, {base.value + size}};
  claim_ = range;
  write_own();
  bool is_ours = std::ranges::none_of(takings_(), [&](AppRange taking) { return taking.overlaps(range); });
  claim_ = {};
  if (is_ours) tell_own(range);
  else write_own();
  return is_ours;
}

// (What code was to be there is found anew.)
bool Space::give_up(CachePc base) {
  Arena* arena = arenas_.at(base);
  if (!arena || arena->base != base || !arena->units.empty()) return false;
  AppRange range{{base.value}, {base.value + arena->size}};
  auto is_its = [&](const Piece& p) {
    return range.contains({p.address}) || (arena->archive && p.file == arena->archive->file().get());
  };
  std::erase_if(pieces_, is_its);
  uint32_t index = arenas_.index_of(*arena);
  std::erase_if(regions_, [&](const Region& r) { return r.arena == index; });
  std::erase(own_, range);
  Arena none;
  none.base = base, none.first_link = arena->first_link;
  *arena = std::move(none);
  write_own();
  write_page();
  return true;
}

Result<uint32_t> Space::create_common_arena(CachePc base, size_t size, Version version) {
  uint32_t number = arenas_.count_common();
  if (number >= max_common_arenas) return fail("the code cache is full");
  TRY(uint32_t index, create_arena(base, size));
  arenas_[index].first_link = first_common_link + number * common_links;
  arenas_[index].max_links = common_links;
  arenas_[index].version = version;
  return index;
}

bool Space::is_free(uint64_t begin, size_t size, std::span<const process::Region> taken) const {
  if (begin < 0x10000 || begin >= uint64_t{1} << 47 || begin + size >= uint64_t{1} << 47) return false;
  AppRange r{{begin}, {begin + size}};
  for (const Translated& v : versions_)
    if (r.overlaps({{v.table_address}, {v.table_address + rt::table_size}})) return false;
  if (is_given(r) || has_tool_region_in(r)) return false;
  for (const process::Region& t : taken) {
    int64_t growth = t.path == "[stack]" ? stack_growth : 0;
    if (AppRange{t.range.begin + -growth, t.range.end}.overlaps(r)) return false;
  }
  return arenas_.has_room(r);
}

// Room for an arena: below the images, at first with room for more images between; if possible in the same 4 GiB as the region, which
// makes calls cheaper.
CachePc Space::find_gap(AppRange range, size_t size, std::span<const process::Region> taken) const {
  std::vector<uint64_t> candidates;
  if (range.end.value < rt::low_arena_begin) candidates.push_back(rt::low_arena_begin);
  const uint64_t step = std::min<uint64_t>(size, 64u << 20);
  for (uint64_t distance = 1024u << 20; distance + size + image_margin < reach; distance += step)
    candidates.push_back((range.begin.value - distance - size) & ~(step - 1));
  for (uint64_t distance = 1024u << 20; distance >= step; distance -= step)
    candidates.push_back((range.begin.value - distance - size) & ~(step - 1));
  for (uint64_t distance = reach; distance >= step; distance -= step)
    candidates.push_back((range.end.value + distance + step) & ~(step - 1));
  auto same_half = [&](uint64_t c) {
    return c >> 32 == range.begin.value >> 32 && (c + size - 1) >> 32 == range.end.value >> 32;
  };
  std::stable_partition(candidates.begin(), candidates.end(), same_half);
  auto gap = std::find_if(candidates.begin(), candidates.end(),
                          [&](uint64_t c) { return is_free(c, size, taken) && near({c}, size, range); });
  return {gap == candidates.end() ? 0 : *gap};
}

Result<uint32_t> Space::create_arena(CachePc base, size_t size) {
  Arena arena;
  arena.base = base;
  arena.size = size;
  arena.links.reserve(1 << 17);  // (what is never touched costs nothing, and moving to a larger place does)
  TRY(auto memory, SharedMemory::create("weir-cache", size));
  arena.memory = std::make_shared<SharedMemory>(std::move(memory));
  add_piece({.file = arena.memory->file.get(),
             .offset = 0,
             .address = base.value,
             .size = size,
             .protection = PROT_READ | PROT_EXEC,
             .is_new = true});
  return arenas_.add(std::move(arena));
}

uint64_t Space::table_size() const {
  uint64_t size = 0;
  for (const Translated& v : versions_)
    if (struct stat st{}; !fstat(v.table.file.get(), &st)) size += static_cast<uint64_t>(st.st_blocks) * 512;
  return size;
}

bool Space::knows(AppRange range) const {
  return std::ranges::any_of(known_code(), [&](AppRange r) { return r.overlaps(range); });
}

// Regions, and the other segments of images with an arena of their own: its archive may have code of all of them.
std::vector<AppRange> Space::known_code() const {
  std::vector<AppRange> known;
  for (const Region& r : regions_) known.push_back(r.range);
  for (const Arena& a : arenas_) {
    auto is_of_arena = [&](const Region& r) { return a.code.overlaps(r.range); };
    if (a.segments.size() < 2 || std::ranges::none_of(regions_, is_of_arena)) continue;
    for (AppRange s : a.segments)
      if (std::ranges::none_of(regions_, [&](const Region& r) { return r.range.covers(s); })) known.push_back(s);
  }
  return known;
}

bool Space::stays_guarded(AppRange range, bool is_writable) const {
  for (const Arena& a : arenas_)
    if (std::ranges::any_of(a.segments, [&](AppRange s) { return s.overlaps(range); })) return false;
  return std::ranges::all_of(regions_, [&](const Region& r) {
    return !r.range.overlaps(range) || (r.is_volatile && (is_writable || !r.file.id.empty()));
  });
}

void Space::forget(AppRange range) {
  for (uint32_t i = 0; i < arenas_.size(); i++)
    if (arenas_[i].code.overlaps(range)) {
      if (arenas_[i].is_keepable && range.covers(arenas_[i].code)) save(arenas_[i]);  // a library is closed
      take_over(i);
    }
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

// Nothing leads to the unit any more. A thread that is in it stays there until it leaves.
void Space::retire(uint32_t id) {
  Unit& unit = units_[id];
  unit.dead = true;
  live_code_ -= unit.room;
  dead_.push_back(id);
  epoch_++;
  stats_.flushed_units++;
  Version version = version_of_unit(unit);
  for (AppPc pc : unit.table) enter_in_table(pc, version, {});
  for (const auto& b : unit.blocks) {
    if (CachePc* entry = versions_[version].entries.find(b.app)) *entry = {};
    links_.unlink(b.app, version);
  }
}

Result<std::unique_ptr<Space>> Space::copy() const {
  TRY(auto s, create_empty([&] { return tool_->copy(); }, takings_));
  s->counters_ = counters_;
  s->named_ = named_;
  for (const Translated& v : versions_) s->versions_.push_back({{}, v.table_address, v.functions, v.entries});
  s->given_ = given_;
  s->given_low_ = given_low_;
  s->tool_regions_ = tool_regions_;
  TRY(s->twins_, twins_.copy());
  TRY_VOID(s->create_memory());
  s->regions_ = regions_;
  s->write_page();
  s->write_code();
  s->promised_ = promised_;
  for (const std::string& name : images_) s->add_image(name);
  s->units_ = units_;
  s->live_ = live_;
  s->dead_ = dead_;
  s->dying_ = dying_;
  s->free_units_ = free_units_;
  s->epoch_ = epoch_;
  s->dying_epoch_ = dying_epoch_;
  s->links_.copy(links_);
  s->limit_ = limit_;
  s->live_code_ = live_code_;
  s->has_archives_ = has_archives_;
  for (const Arena& a : arenas_) {
    Arena c = a;
    if (!a.size) {  // it was given up
      s->arenas_.add(std::move(c));
      continue;
    }
    TRY(auto memory, SharedMemory::create("weir-cache", a.size));
    c.memory = std::make_shared<SharedMemory>(std::move(memory));
    size_t archived = a.archive ? a.code_pages.size() * Archive::page : 0;  // see copy_archived
    memcpy(c.memory->mapping.data() + archived, a.memory->mapping.data() + archived, a.used - archived);
    // Other threads of the process are in there, and stay: nothing may be mapped over code that is not there as well.
    s->add_piece(
        {c.memory->file.get(), archived, c.base.value + archived, c.size - archived, PROT_READ | PROT_EXEC, false});
    s->tell_own({{c.base.value}, {c.base.value + c.size}});
    s->arenas_.add(std::move(c));
  }
  for (const Unit& u : units_)
    if (!u.dead)
      for (AppPc pc : u.table) s->table_cell(pc, version_of_unit(u)) = table_cell(pc, version_of_unit(u));
  s->copy_archived(*this);
  if (places_.file && !s->make_places()) return fail("there is no memory for what is known of its code");
  return s;
}

}  // namespace weir::engine
