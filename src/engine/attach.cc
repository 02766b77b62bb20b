// Attaching: a process that runs already goes on in the cache.
//
// All its threads are stopped, and nothing of it runs until it is ready. One of them makes the system calls that map the runtime and
// the space, and that put our handler in the place of the program's. What a thread was about to execute is translated here, so
// that it needs a new pc and its thread block, and nothing else. A thread in a system call is still in the kernel, which will begin the
// call again, or end it with EINTR, when the thread goes on: so it gets the pc behind the call in the cache, and all that is as natively.

#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include <algorithm>
#include <fstream>

#include "engine/server.h"
#include "instrument/clock.h"
#include "process/threads.h"
#include "rt/told_calls.h"

namespace weir::engine {

namespace {

// Code of a file. (Other code is looked at when it comes to be executed.)
bool is_image(const process::Region& r) { return r.executable && (r.inode || r.path == "[vdso]"); }

// The space of a process that stands still: all its code is known from the start.
Result<std::unique_ptr<Space>> space_of(pid_t tid, const Space::MakeTool& make_tool, const Space::Takings& takings) {
  TRY(auto regions, process::regions(tid));
  TRY(auto space, Space::create(make_tool, takings, regions, false));
  for (const process::Region& r : regions) {
    if (is_image(r)) TRY_VOID(space->know(r.range.begin, tid));
    if (r.executable) space->note_code(r.range);
  }
  return space;
}

// How many thread blocks there is room for. (Some programs map memory at random addresses.)
uint32_t room_for_blocks(pid_t tid) {
  uint64_t end = rt::blocks_base + rt::blocks_size;
  if (auto regions = process::regions(tid))
    for (const process::Region& r : *regions)
      if (r.range.end.value > rt::blocks_base) end = std::min(end, std::max(r.range.begin.value, rt::blocks_base));
  return static_cast<uint32_t>((end - rt::blocks_base) / rt::block_stride);
}

// A call that the thread is in: it will be over behind a probe that tells so.
void note_waiting_call(const Space& space, const process::Tracee& tracee, std::byte* memory) {
  auto regs = tracee.registers();
  if (!space.tool().services().system_calls || !regs || !process::is_in_restart(*regs)) return;
  auto* calls = reinterpret_cast<rt::ToldCalls*>(memory + rt::told_calls_offset);
  calls->waiting[0] = {.pc = regs->rip,
                       .rsp = regs->rsp,
                       .call = {regs->orig_rax, {regs->rdi, regs->rsi, regs->rdx, regs->r10, regs->r8, regs->r9}},
                       .is_late = true,
                       .is_dropped = false};
  calls->count = 1;
}

}  // namespace

Result<> enter_cache(Space& space, Version version, pid_t tid, user_regs_struct& regs) {
  constexpr uint64_t cs_64 = 0x33, restart_syscall = 219, none = ~uint64_t{0};
  constexpr int64_t ERESTART_RESTARTBLOCK = 516;
  if (regs.cs != cs_64) return fail("it executes 32-bit code");
  if (process::is_in_restart(regs)) {
    bool is_engines = rt::is_engine_call(static_cast<int64_t>(regs.orig_rax));
    CachePc behind = is_engines ? CachePc{} : space.behind_system_call({regs.rip}, version, tid);
    if (behind) {
      regs.rip = behind.value;
      return {};
    }
    // One that the runtime must see is begun again in the program.
    regs.rax = static_cast<int64_t>(regs.rax) == -ERESTART_RESTARTBLOCK ? restart_syscall : regs.orig_rax;
    regs.orig_rax = none;
    regs.rip -= 2;
  }
  space.prepare({regs.rip}, version, tid, true);
  TRY(CachePc to, space.translate({regs.rip}, version, tid));
  regs.rip = to.value;
  return {};
}

Result<> Server::attach_all() {
  watch_signals();
  for (int pid : options_.pids) {
    auto attached = processes_.contains(pid) ? Result<>{} : attach(pid);
    if (attached) continue;
    guardian_.forget(pid);
    detach_all();
    return attached;
  }
  using namespace std::chrono;
  if (options_.seconds > 0)
    deadline_ = steady_clock::now() + duration_cast<steady_clock::duration>(duration<double>(options_.seconds));
  return {};
}

namespace {
// Sparse memory. A process that locks all that it maps would have all of it made: so it is unlocked before anybody may touch it.
Result<> map_sparse(process::RemoteSyscalls& remote, AppRange range, int protection, int flags, uint64_t file,
                    uint64_t offset) {
  uint64_t begin = range.begin.value, size = range.size();
  TRY_VOID(remote.call("mmap", SYS_mmap, begin, size, PROT_NONE, static_cast<uint64_t>(flags | MAP_FIXED_NOREPLACE), file,
                       offset));
  TRY_VOID(remote.call("munlock", SYS_munlock, begin, size));
  if (protection) TRY_VOID(remote.call("mprotect", SYS_mprotect, begin, size, static_cast<uint64_t>(protection)));
  return {};
}

// (What Weir sees is mapped already.)
Result<> map_region(process::RemoteSyscalls& remote, const instrument::ToolRegion& region, AppRange range) {
  uint64_t begin = range.begin.value, size = range.size();
  int flags = map_flags_of(region);
  Result<> mapped;
  if (is_private(region))
    mapped = map_sparse(remote, guard_of(range), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, ~uint64_t{0}, 0);
  if (mapped && !region.is_visible) mapped = map_sparse(remote, range, PROT_READ | PROT_WRITE, flags, ~uint64_t{0}, 0);
  if (!mapped) return fail("{}", no_room_for({&region, 1}));
  for (uint64_t advice : region_advice) (void)remote.call("madvise", SYS_madvise, begin, size, advice);
  return {};
}
}  // namespace

// The runtime, the thread blocks and the space. A process of another user than root, whom Weir runs as, opens them through a keeper.
Result<> Server::map_all(process::RemoteSyscalls& remote, pid_t agent, const Space& space,
                         const RegionFiles& region_files) {
  std::vector<Piece> pieces(space.pieces().begin(), space.pieces().end());
  pieces.push_back({runtime_.file.get(), 0, rt::runtime_base, runtime_.mapping.size(), PROT_READ | PROT_EXEC});
  pieces.push_back({slots_.memory().file.get(), 0, rt::blocks_base, slots_.mapped_size(), PROT_READ | PROT_WRITE});
  auto regions = space.tool().services().regions;
  for (size_t i = 0; i < regions.size(); i++)
    if (region_files[i])
      pieces.push_back(
          {region_files[i]->get(), 0, space.tool_regions()[i].begin.value, regions[i].size, PROT_READ | PROT_WRITE});
  std::vector<process::Keeper::Loan> loans;
  for (const Piece& piece : pieces)
    if (std::ranges::find(loans, piece.file, &process::Keeper::Loan::file) == loans.end())
      loans.push_back({piece.file, (piece.protection & PROT_WRITE) != 0});
  process::Keeper keeper(agent, loans);
  for (const Piece& piece : pieces) {
    int flags = (piece.protection & PROT_WRITE ? O_RDWR : O_RDONLY) | O_CLOEXEC;
    auto file = remote.open(fmt::format("/proc/{}/fd/{}", keeper.pid(), piece.file), flags);
    if (!file)
      return fail(
          "{}: it cannot open weir's memory through /proc, as it is in another container, or has another root; run weir "
          "there, or "
          "weir sample --pid, which needs no /proc",
          file.error().what);
    auto fd = static_cast<uint64_t>(*file);
    AppRange range{{piece.address}, {piece.address + piece.size}};
    auto mapped = map_sparse(remote, range, piece.protection, MAP_SHARED | MAP_NORESERVE, fd, piece.offset);
    TRY_VOID(remote.call("close", SYS_close, fd));
    if (!mapped) return fail("{}: there is no room for weir at {:#x}", mapped.error().what, piece.address);
    (void)remote.call("madvise", SYS_madvise, piece.address, piece.size, MADV_DONTDUMP);
  }
  for (size_t i = 0; i < regions.size(); i++) TRY_VOID(map_region(remote, regions[i], space.tool_regions()[i]));
  return {};
}

// The kernel's signal actions, by way of the slot's request, which both sides see.
Result<> Server::set_action(process::RemoteSyscalls& remote, uint32_t slot, uint64_t sig,
                            const rt::KernelSigaction& action) {
  memcpy(block(slot)->request.text, &action, sizeof action);
  TRY_VOID(remote.call("rt_sigaction", SYS_rt_sigaction, sig, text_address(slot), 0, 8));
  return {};
}
Result<rt::KernelSigaction> Server::action_of(process::RemoteSyscalls& remote, uint32_t slot, uint64_t sig) {
  TRY_VOID(remote.call("rt_sigaction", SYS_rt_sigaction, sig, 0, text_address(slot), 8));
  rt::KernelSigaction action;
  memcpy(&action, block(slot)->request.text, sizeof action);
  return action;
}

// The program's handlers: the runtime calls them.
Result<> Server::take_actions(process::RemoteSyscalls& remote, uint32_t slot, pid_t tid) {
  rt::ThreadBlock* tb = block(slot);
  uint64_t caught = strtoull(process::status_word(tid, "SigCgt").c_str(), nullptr, 16);
  for (uint64_t sig = 1; sig <= 64; sig++) {
    if (!(caught >> (sig - 1) & 1)) continue;
    TRY(tb->own_actions[sig - 1], action_of(remote, slot, sig));
    TRY_VOID(set_action(remote, slot, sig, rt::instead_of(tb->own_actions[sig - 1], header_.signal_entry)));
  }
  return {};
}

// What the process needs before one of its threads can be in the cache.
Result<> Server::make_ready(pid_t agent, const Space& space, uint32_t first_slot, const RegionFiles& region_files) {
  TRY(auto remote, process::RemoteSyscalls::begin(process::Tracee(agent), process::find_syscall(agent)));
  auto done = map_all(remote, agent, space, region_files);
  if (done) done = take_actions(remote, first_slot, agent);
  if (!done) {
    (void)give_back_actions(remote, first_slot, agent, false);
    (void)unmap_ours(remote, agent, space);
    return done;
  }
  return remote.end();
}

Result<> Server::attach(pid_t pid) {
  TRY_VOID(process::may_attach(pid));
  std::string program = process::program_name(pid);
  auto cannot = [&](const Error& e) { return fail("process {} ({}): {}", pid, program, e.what); };
  if (auto regions = process::regions(pid))  // what takes long is done while it runs
    for (const process::Region& r : *regions)
      if (is_image(r)) (void)symbols::open_image(pid, r);
  process::Threads threads(pid);
  TRY_VOID(threads.stop([&] { return !detach_is_wanted(); }));
  std::vector<pid_t> tids = threads.tids();
  pid_t agent = threads.agent();
  auto space = space_of(agent, options_.make_tool, [this] { return slots_.takings(); });
  if (!space) return cannot(space.error());
  (*space)->set_limit(options_.cache_limit);
  has_versions_ |= (*space)->has_version(1);
  std::vector<user_regs_struct> registers;
  for (pid_t tid : tids) {
    TRY(user_regs_struct regs, process::Tracee(tid).registers());
    if (auto ok = enter_cache(**space, 0, tid, regs); !ok) return cannot(ok.error());
    registers.push_back(regs);
  }

  slots_.set_limit(room_for_blocks(agent));
  Process p;
  p.memory = std::make_shared<Memory>();
  TRY(p.memory->region_files, create_files((*space)->tool().services().regions));
  for (pid_t tid : tids) {
    uint32_t slot = allocate_slot(pid, tid);
    if (!slot) return cannot({"there is no room for its thread blocks, or it has too many threads"});
    slots_.run(slot, pid, tid);
    p.slots.push_back(slot);
    rt::ThreadBlock* tb = block(slot);
    tb->has_rseq = 1;
    note_waiting_call(**space, process::Tracee(tid), memory_of(slot));
    tb->actions =
        reinterpret_cast<rt::KernelSigaction*>(Slots::address(p.slots[0]) + offsetof(rt::ThreadBlock, own_actions));
  }
  p.first_slot = p.slots[0];
  guardian_.watch(pid);  // from here on it could not go on without us
  threads.end_with_us();
  auto limit = lend_descriptors(agent);
  auto ready = make_ready(agent, **space, p.first_slot, p.memory->region_files);
  if (limit) prlimit(agent, RLIMIT_NOFILE, &*limit, nullptr);
  if (!ready) return cannot(ready.error());

  for (size_t i = 0; i < registers.size(); i++) {
    rt::ThreadBlock* tb = block(p.slots[i]);
    tb->app_gs = std::exchange(registers[i].gs_base, Slots::address(p.slots[i]));
    tb->app_fs = registers[i].fs_base;
    pid_t tid = tids[i];
    (*space)->tool().begin_thread({.memory = memory_of(p.slots[i]), .name = process::thread_name(pid, tid)});
    // The program's zmm31 goes to the thread block: the register is the clock's, which begins at 0.
    if (uint32_t offset = (*space)->tool().services().clock ? instrument::clock_register_offset() : 0)
      TRY_VOID(process::exchange_zmm31(tid, offset, tb->clock.zmm31));
    TRY_VOID(process::Tracee(tid).set_registers(registers[i]));
  }
  p.pid = p.own_pid = pid;
  p.has_begun = true;
  p.pidfd = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  p.run.pid = static_cast<uint32_t>(pid);
  p.run.program = std::move(program);
  p.run.command = process::command_of(pid);
  p.run.started = process::microseconds_now();
  p.perf_map = process::open_perf_map(pid, p.own_pid, process::began(pid));
  p.memory->mapped = (*space)->pieces().size();
  p.space = std::move(*space);
  stats_.processes++;
  stats_.threads += p.slots.size();
  Process& own = processes_.emplace(pid, std::move(p)).first->second;
  for (uint32_t slot : own.slots) enroll(own, slot);
  watch_faults(tids);
  if (has_results()) renew_guardian();
  return {};
}

}  // namespace weir::engine
