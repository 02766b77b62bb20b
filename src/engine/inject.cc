// Injection: at the exec stop the kernel has mapped the program as it would natively. The stopped process maps the runtime
// and gets a thread block; let go, it asks for the rest (rt::BeginRequest): the program and its loader are moved to their homes,
// the space is mapped, and the process goes on in the translation of its first instruction.

#include <elf.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "engine/home.h"
#include "engine/server.h"
#include "process/tracee.h"

namespace weir::engine {

namespace {

process::FileMapping file_mapping(const process::Keeper& keeper, const SharedMemory& memory, uint64_t address,
                                  uint64_t protection) {
  uint64_t open_flags = (protection & PROT_WRITE ? O_RDWR : O_RDONLY) | O_CLOEXEC;
  process::FileMapping result{
      open_flags, address, memory.mapping.size(), protection, MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_NORESERVE, {}};
  fmt::format_to_n(result.path, sizeof result.path - 1, "/proc/{}/fd/{}", keeper.pid(), memory.file.get());
  return result;
}

// The auxiliary vector of a new program: on its stack, behind argc, argv, 0, envp, 0.
struct Auxiliary {
  uint64_t address = 0;  // of the first entry
  std::vector<Elf64_auxv_t> entries;

  static Result<Auxiliary> read(pid_t pid, uint64_t rsp) {
    Auxiliary result;
    for (size_t size = 1 << 13; size <= 8u << 20; size *= 8) {
      std::vector<uint64_t> words(size);
      words.resize(process::read(pid, rsp, std::as_writable_bytes(std::span(words))) / 8);
      size_t i = words.empty() || words[0] > words.size() ? words.size() : 2 + words[0];
      while (i < words.size() && words[i]) i++;
      result.address = rsp + ++i * 8;
      result.entries.clear();
      for (; i + 1 < words.size(); i += 2) {
        result.entries.push_back({words[i], {words[i + 1]}});
        if (words[i] == AT_NULL) return result;
      }
    }
    return fail("{}: its auxiliary vector cannot be read", process::program_name(pid));
  }
  uint64_t value(uint64_t type) const {
    for (const Elf64_auxv_t& e : entries)
      if (e.a_type == type) return e.a_un.a_val;
    return 0;
  }
};

// The mappings of an image that the kernel has loaded at `begin`.
std::span<process::Region> mappings_of(std::vector<process::Region>& regions, AppRange extent) {
  auto first =
      std::find_if(regions.begin(), regions.end(), [&](const process::Region& r) { return r.range.begin >= extent.begin; });
  auto last = first;
  while (last != regions.end() && last->range.end <= extent.end) ++last;
  return {first, last};
}

}  // namespace

// The tool's regions, in a program that has not begun.
Result<> Server::map_regions(pid_t pid, const Space& space, const Memory& memory, uint64_t page) {
  auto regions = space.tool().services().regions;
  if (regions.empty()) return {};
  std::vector<process::Keeper::Loan> loans;
  std::vector<process::FileMapping> mappings;
  for (const auto& file : memory.region_files)
    if (file) loans.push_back({file->get(), true});
  process::Keeper keeper(pid, loans);
  for (size_t i = 0; i < regions.size(); i++) {
    AppRange range = space.tool_regions()[i], guard = guard_of(range);
    if (is_private(regions[i]))
      mappings.push_back(
          {0, guard.begin.value, guard.size(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, {}});
    auto flags = static_cast<uint64_t>(map_flags_of(regions[i]) | MAP_FIXED_NOREPLACE);
    process::FileMapping& m = mappings.emplace_back(
        process::FileMapping{O_RDWR | O_CLOEXEC, range.begin.value, range.size(), PROT_READ | PROT_WRITE, flags, {}});
    if (regions[i].is_visible)
      fmt::format_to_n(m.path, sizeof m.path - 1, "/proc/{}/fd/{}", keeper.pid(), memory.region_files[i]->get());
  }
  if (auto mapped = process::map_files(process::Tracee(pid), page, mappings); !mapped)
    return fail("{}: {}", process::program_name(pid), no_room_for(regions));
  return {};
}

Result<> Server::inject(pid_t pid) {
  process::Tracee tracee(pid);
  TRY(user_regs_struct regs, tracee.registers());
  constexpr uint64_t cs_64 = 0x33;
  if (regs.cs != cs_64) return fail("{}: a 32-bit program; Weir runs 64-bit x86 programs", process::program_name(pid));
  TRY(auto regions, process::regions(pid));
  TRY(auto auxiliary, Auxiliary::read(pid, regs.rsp));
  AppPc entry_point{auxiliary.value(AT_ENTRY)};
  auto program =
      std::find_if(regions.begin(), regions.end(), [&](const process::Region& r) { return r.range.contains(entry_point); });
  if (program == regions.end()) return fail("{}: its entry point is not mapped", process::program_name(pid));
  auto image = symbols::open_image(pid, *program);
  bool sanitized = image && (*image)->uses_address_sanitizer();
  TRY(auto space, Space::create(options_.make_tool, [this] { return slots_.takings(); }, regions, sanitized));
  space->set_limit(options_.cache_limit);
  has_versions_ |= space->has_version(1);
  std::array loans = {process::Keeper::Loan{runtime_.file.get()}, process::Keeper::Loan{slots_.memory().file.get(), true}};
  process::Keeper keeper(pid, loans);
  std::array ours = {file_mapping(keeper, runtime_, rt::runtime_base, PROT_READ | PROT_EXEC),
                     file_mapping(keeper, slots_.memory(), rt::blocks_base, PROT_READ | PROT_WRITE)};
  uint64_t page = entry_point.value & ~uint64_t{4095};
  TRY_VOID(process::map_files(tracee, page, ours));
  auto memory = std::make_shared<Memory>();
  auto tool_regions = space->tool().services().regions;
  TRY(memory->region_files, create_files(tool_regions));
  TRY_VOID(map_regions(pid, *space, *memory, page));

  uint32_t slot = allocate_slot(pid, pid);
  if (!slot) return fail("too many threads");
  user_regs_struct begin = regs;
  begin.rip = header_.begin;
  begin.gs_base = Slots::address(slot);
  begin.orig_rax = ~0ull;
  auto mask = tracee.block_signals();
  auto is_set = mask ? tracee.set_registers(begin) : Result<>(std::unexpected(mask.error()));
  if (!is_set) return free_slot(slot), is_set;
  slots_.run(slot, pid, pid);
  rt::ThreadBlock* tb = block(slot);
  tb->regs = {};
  tb->regs.gpr[4] = regs.rsp;
  tb->regs.flags = regs.eflags;
  tb->regs.pc = regs.rip;
  tb->exit_mask = *mask;
  tb->exit_unmask = 1;
  Process& p = processes_[pid];
  p.pid = pid;
  if (!p.own_pid) p.own_pid = pid;
  if (!p.pidfd) p.pidfd = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  p.space = std::move(space);
  p.run.pid = static_cast<uint32_t>(pid);
  p.run.program = process::program_name(pid);
  p.run.command = process::command_of(pid);
  p.run.started = process::microseconds_now();
  p.slots = {slot};
  p.first_slot = slot;
  p.memory = std::move(memory);
  for (const process::FileMapping& m : ours)
    p.calls.push_back({SYS_madvise, {m.address, m.size, MADV_DONTDUMP}, {}, rt::Optional});
  for (const AppRange& r : p.space->tool_regions())
    for (uint64_t advice : region_advice)
      p.calls.push_back({SYS_madvise, {r.begin.value, r.size(), advice}, {}, rt::Optional});
  p.quiet = false;
  p.has_begun = false;
  p.begin = {regs.rip};
  p.stack = regs.rsp;
  tb->elsewhere = p.elsewhere;
  enroll(p, slot);
  guardian_is_old_ = has_results();
  stats_.processes++;
  stats_.threads++;
  return {};
}

namespace {
rt::Call move_region(process::Region& r, int64_t distance) {
  AppRange from = r.range;
  r.range = {from.begin + distance, from.end + distance};
  return {
      SYS_mremap, {from.begin.value, from.size(), from.size(), MREMAP_MAYMOVE | MREMAP_FIXED, r.range.begin.value}, {}, 0};
}

void sort_by_address(std::vector<process::Region>& regions) {
  std::ranges::sort(regions, {}, [](const process::Region& r) { return r.range.begin; });
}
}  // namespace

// Has an image moved that the kernel has loaded, and that has not begun to run. Returns how far.
int64_t Server::move_home(Process& p, std::vector<process::Region>& regions, AppPc begin) {
  auto first =
      std::find_if(regions.begin(), regions.end(), [&](const process::Region& r) { return r.range.begin == begin; });
  if (first == regions.end()) return 0;
  auto image = symbols::open_image(p.pid, *first);
  if (!image) return 0;
  elf::VRange extent = extent_of(**image);
  AppRange range{begin, begin + static_cast<int64_t>(extent.size())};
  std::optional<AppPc> home;
  for (uint64_t attempt = 0; !home && attempt < 8; attempt++) {
    home = home_of(**image, attempt);
    if (!home) return 0;
    if (!p.space->has_room_for({*home, *home + static_cast<int64_t>(extent.size())})) home.reset();
  }
  if (!home) return 0;
  p.space->promise({*home, *home + static_cast<int64_t>(extent.size())});
  int64_t distance = *home - begin;
  for (process::Region& r : mappings_of(regions, range)) p.calls.push_back(move_region(r, distance));
  sort_by_address(regions);
  return distance;
}

namespace {
// The kernel's own record of where the program is, for /proc/PID/stat and auxv.
struct prctl_mm_map moved_record(pid_t pid, int64_t distance) {
  using namespace process;
  Stat stat = stat_of(pid);
  auto moved = [&](int field) { return stat.number(field) + static_cast<uint64_t>(distance); };
  struct prctl_mm_map map{};
  map.start_code = moved(StatStartCode), map.end_code = moved(StatEndCode), map.start_stack = stat.number(StatStartStack);
  map.start_data = moved(StatStartData), map.end_data = moved(StatEndData);
  map.start_brk = map.brk = stat.number(StatStartBrk);
  map.arg_start = stat.number(StatArgStart), map.arg_end = stat.number(StatArgEnd);
  map.env_start = stat.number(StatEnvStart), map.env_end = stat.number(StatEnvEnd);
  map.exe_fd = ~0u;
  return map;
}
}  // namespace

// What the program is told of where it and its loader are.
Result<> Server::tell_moved(Process& p, uint32_t slot, const Distances& moved) {
  rt::ThreadBlock* tb = block(slot);
  TRY(auto auxiliary, Auxiliary::read(p.pid, p.stack));
  for (Elf64_auxv_t& e : auxiliary.entries) {
    if (e.a_type == AT_PHDR || e.a_type == AT_ENTRY) e.a_un.a_val += static_cast<uint64_t>(moved.program);
    if (e.a_type == AT_BASE && e.a_un.a_val) e.a_un.a_val += static_cast<uint64_t>(moved.loader);
    if (e.a_type == AT_SYSINFO_EHDR) e.a_un.a_val += static_cast<uint64_t>(moved.vdso);
  }
  auto bytes = std::as_bytes(std::span(auxiliary.entries));
  TRY_VOID(process::Tracee(p.pid).write(auxiliary.address, bytes));
  // A kernel without checkpoints goes on telling the old addresses.
  struct prctl_mm_map map = moved_record(p.pid, moved.program);
  if (sizeof map + bytes.size() > sizeof tb->request.text) return {};
  uint64_t text = text_address(slot);
  map.auxv = reinterpret_cast<__u64*>(text + sizeof map);
  map.auxv_size = static_cast<uint32_t>(bytes.size());
  memcpy(tb->request.text, &map, sizeof map);
  memcpy(tb->request.text + sizeof map, bytes.data(), bytes.size());
  p.calls.push_back({SYS_prctl, {PR_SET_MM, PR_SET_MM_MAP, text, sizeof map}, {}, rt::Optional});
  return {};
}

// The kernel puts the vDSO, with its data before it, elsewhere in each run: then it would take the home of another image each time.
int64_t Server::move_vdso(Process& p, std::vector<process::Region>& regions, AppPc vdso) {
  auto last = std::ranges::find(regions, vdso, [](const process::Region& r) { return r.range.begin; });
  if (last == regions.end()) return 0;
  auto first = last;
  while (first != regions.begin() && std::prev(first)->path.starts_with("[vvar") &&
         std::prev(first)->range.end == first->range.begin)
    --first;
  int64_t distance = AppPc{rt::vdso_base} - first->range.begin;
  for (auto r = first; r != last + 1; ++r) p.calls.push_back(move_region(*r, distance));
  sort_by_address(regions);
  return distance;
}

// Returns where the program is to begin.
Result<AppPc> Server::begin_program(Process& p, uint32_t slot) {
  TRY(auto regions, process::regions(p.pid));
  TRY(auto auxiliary, Auxiliary::read(p.pid, p.stack));
  AppPc begin = p.begin, headers{auxiliary.value(AT_PHDR)}, loader{auxiliary.value(AT_BASE)};
  AppPc vdso{auxiliary.value(AT_SYSINFO_EHDR)};
  Distances distances;
  // The program's first mapping is the one that holds its headers.
  auto first =
      std::find_if(regions.begin(), regions.end(), [&](const process::Region& r) { return r.range.contains(headers); });
  AppPc program = first == regions.end() ? AppPc{} : first->range.begin;
  // Code that is made at run time will come near where the kernel puts things.
  p.memory->kernels_choice = loader ? loader : vdso;
  TRY_VOID(p.space->reserve_near({p.memory->kernels_choice, p.memory->kernels_choice + 1}, p.pid));
  // What stays where it is comes first.
  auto is_code = [&](const process::Region& r) {
    return r.executable && r.path != "[vsyscall]" && r.range.begin.value != rt::runtime_base;
  };
  bool has_homes = p.space->table_address() == rt::table_base && !keep_addresses();
  auto found = std::ranges::find(regions, vdso, [](const process::Region& r) { return r.range.begin; });
  if (found != regions.end()) {
    process::Region r = *found;
    auto image = symbols::open_image(p.pid, r).value_or(nullptr);
    distances.vdso = has_homes ? move_vdso(p, regions, vdso) : 0;
    vdso += distances.vdso;
    r.range = {vdso, vdso + static_cast<int64_t>(r.range.size())};
    TRY_VOID(add(p, r, std::move(image)));
  }
  if (has_homes) {
    distances.program = program ? move_home(p, regions, program) : 0;
    distances.loader = loader ? move_home(p, regions, loader) : 0;
    begin += loader ? distances.loader : distances.program;
    TRY_VOID(tell_moved(p, slot, distances));
  }
  for (const process::Region& r : regions)
    if (is_code(r) && r.range.begin != vdso) TRY_VOID(add(p, r, symbols::open_image(p.pid, r).value_or(nullptr)));
  return begin;
}

rt::GoOn Server::begin(Process& p, uint32_t slot) {
  if (std::exchange(p.has_begun, true)) return {};
  auto begin = begin_program(p, slot);
  rt::GoOn to{};
  to.pc = begin ? begin->value : p.begin.value;
  if (begin) {
    p.space->tool().begin_thread({.memory = memory_of(slot), .pc = *begin});
    return to;
  }
  if (p.pid == main_pid_) {
    end_with_message(p, begin.error().what);
    return to;
  }
  say("not followed: {}", begin.error().what);
  stats_.not_followed++;
  guardian_.forget(p.pid);
  slots_.end_thread(slot);
  p.slots.clear();
  p.calls.clear();
  p.memory->mapped = p.space->pieces().size();
  p.left_alone = true;
  to.native = rt::NativeTarget;
  return to;
}

Result<> Server::add(Process& p, const process::Region& region, std::shared_ptr<elf::Image> image) {
  TRY_VOID(p.space->add(region, std::move(image), p.pid));
  if (is_attached()) return {};  // nothing of ours is to be left in the end
  // Nothing that the kernel places may become code with the same low 32 bits. (Where something is mapped already the call fails:
  // that cannot become code of a library.)
  uint64_t near = p.memory->kernels_choice.value >> 32, low = region.range.begin.value & 0xffffffff;
  if (region.range.begin.value >> 32 == near) return {};
  for (uint64_t window : {near, near - 1}) {
    AppRange same{{window << 32 | low}, {(window << 32 | low) + region.range.size()}};
    if (std::ranges::any_of(p.space->own(), [&](AppRange own) { return own.overlaps(same); })) continue;
    p.calls.push_back({SYS_mmap,
                       {same.begin.value, same.size(), PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, ~uint64_t{0}, 0},
                       {},
                       rt::Optional});
  }
  return {};
}

namespace {
Result<std::shared_ptr<elf::Image>> image_of(pid_t tid, int64_t fd) {
  std::string link = fmt::format("/proc/{}/fd/{}", tid, fd);
  char name[4096];
  ssize_t n = readlink(link.c_str(), name, sizeof name);
  return symbols::open_image(open_to_read(link), std::string(name, n > 0 ? static_cast<size_t>(n) : 0));
}

// A process that has dropped privileges, or changed its root, cannot open our memory any more, and so gets no new arenas.
bool can_open_ours(pid_t pid) {
  struct stat process{}, root{}, own{};
  std::string name = fmt::format("/proc/{}", pid);
  return stat(name.c_str(), &process) == 0 && stat((name + "/root").c_str(), &root) == 0 && stat("/", &own) == 0 &&
         process.st_uid == geteuid() && root.st_ino == own.st_ino && root.st_dev == own.st_dev;
}
}  // namespace

// Where a library is to be mapped.
std::optional<AppPc> Server::place(Process& p, pid_t tid, const rt::PlaceRequest& r) {
  if (p.space->table_address() != rt::table_base || keep_addresses() || !can_open_ours(p.pid)) return {};
  auto image = image_of(tid, r.file);
  if (!image) return {};
  for (uint64_t attempt = r.attempt; attempt < 8; attempt++) {
    auto home = home_of(**image, attempt);
    if (!home || r.size > extent_of(**image).size()) return {};
    AppRange range{*home, *home + static_cast<int64_t>(r.size)};
    if (!p.space->has_room_for(range)) continue;
    p.space->promise(range);
    return home;
  }
  return {};
}

// Code of a library is known from the start, so that processes that fork have it, and homes keep clear of it.
Result<> Server::mapped(Process& p, uint32_t slot, const rt::MappedRequest& r) {
  AppRange range = whole_pages(AppRange{{r.begin}, {r.begin + r.size}});
  uint64_t offset = r.offset;
  auto image = image_of(slots_[slot].tid, r.file);
  if (!image || range.end <= range.begin) return {};
  // Loaders map a whole image like its first segment, and then the other segments over it.
  for (const elf::Segment& s : (*image)->segments())
    if (s.type == PT_LOAD && (s.flags & PF_X) && offset == (s.offset & ~uint64_t{4095}))
      range.end = std::min(range.end,
                           range.begin + static_cast<int64_t>((s.offset + s.file_size - offset + 4095) & ~uint64_t{4095}));
  if (is_shared(p)) TRY_VOID(part(p));
  return add(p, {range, true, false, true, false, offset, 1, (*image)->path()}, *image);
}

}  // namespace weir::engine
