// What a request is answered with: a place to go on at, and the system calls that are to be made first.

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <fstream>

#include "engine/server.h"

namespace weir::engine {

void Server::answer(uint32_t slot) {
  if (guardian_is_old_) renew_guardian();  // before anything can be counted that it does not know of
  rt::RequestBlock& r = block(slot)->request;
  __atomic_store_n(&r.state, rt::RequestState::Answered, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&r.waiting, __ATOMIC_SEQ_CST)) syscall(SYS_futex, &r.state, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

namespace {
bool is_lent(std::span<const process::Keeper::Loan> loans, int file) {
  return std::ranges::find(loans, file, &process::Keeper::Loan::file) != loans.end();
}
}  // namespace

// With its answer a thread gets the calls that are to be made for us, and maps what is new in its space. Are there any?
bool Server::send_calls(Process& p, uint32_t slot) {
  rt::ThreadBlock* tb = block(slot);
  std::span<rt::Call> out(tb->calls);
  size_t n = std::min(p.calls.size(), out.size());
  std::copy_n(p.calls.begin(), n, out.begin());
  p.calls.erase(p.calls.begin(), p.calls.begin() + static_cast<ptrdiff_t>(n));
  std::span<const Piece> pieces = p.space->pieces();
  bool is_other = p.memory->mapped < pieces.size() && process::Keeper::is_needed(p.pid);
  bool is_ours = is_other && process::Keeper::is_our_user(p.pid);  // … who may read archives
  auto file_of = [&](const Piece& piece) {
    return is_other && !is_ours && piece.is_archive ? p.space->file_for_others(piece) : piece.file;
  };
  std::vector<process::Keeper::Loan> loans;
  auto lend = [&](const Piece& piece) {
    int file = file_of(piece);
    if ((!piece.is_archive || is_ours || file != piece.file) && !is_lent(loans, file)) loans.push_back({file});
  };
  if (is_other)
    for (const Piece& piece : pieces.subspan(p.memory->mapped)) lend(piece);
  // A keeper stays, and holds what the process will map again as it changes. (Of archives there are copies, which take a while.)
  bool is_served = is_other && p.keeper.serves(p.pid, loans);
  if (is_other && !is_served)
    for (const Piece& piece : pieces.first(p.memory->mapped))
      if (!piece.is_archive || is_ours) lend(piece);
  if (is_served) p.keeper.open_files();
  else if (p.memory->mapped < pieces.size()) p.keeper = process::Keeper(p.pid, loans);
  int file = -1;
  constexpr size_t most = 4;  // that a piece needs, with the close() of the file before it
  while (p.memory->mapped < pieces.size() && n + most < out.size()) {
    const Piece& piece = pieces[p.memory->mapped];
    // Under a filter any call may be the last one: changes are done without, and asked for again and again.
    if (p.quiet && piece.is_change) {
      p.memory->mapped++;
      continue;
    }
    uint64_t flags =
        piece.is_change ? uint64_t{rt::Optional} : 0;  // what could not be mapped is asked for when it is missed
    if (file_of(piece) != file) {
      if (file >= 0) out[n++] = {SYS_close, {}, {}, rt::UsesDescriptor | rt::Optional};
      constexpr auto here = static_cast<uint64_t>(AT_FDCWD);  // (filters know openat rather than open)
      rt::Call& open = out[n++] = {SYS_openat, {here, 0, O_RDONLY | O_CLOEXEC}, {}, flags | rt::UsesText | rt::Opens};
      fmt::format_to_n(open.text, sizeof open.text - 1, "/proc/{}/fd/{}", p.keeper.pid(), file = file_of(piece));
    }
    uint64_t fixed = piece.is_new ? MAP_FIXED_NOREPLACE : MAP_FIXED;
    out[n++] = {SYS_mmap,
                {piece.address, piece.size, static_cast<uint64_t>(piece.protection), MAP_SHARED | MAP_NORESERVE | fixed, 0,
                 piece.offset},
                {},
                flags | rt::UsesDescriptor};
    // (Of shared memory core dumps would have all.)
    if (!piece.is_archive) out[n++] = {SYS_madvise, {piece.address, piece.size, MADV_DONTDUMP}, {}, rt::Optional};
    p.memory->mapped++;
  }
  if (file >= 0) out[n++] = {SYS_close, {}, {}, rt::UsesDescriptor | rt::Optional};
  tb->request.calls = p.memory->sent = n;
  if (n) p.memory->caller = slot;
  return n;
}

std::optional<rlimit> lend_descriptors(pid_t pid) {
  rlimit limit;
  if (prlimit(pid, RLIMIT_NOFILE, nullptr, &limit)) return {};
  rlim_t more = std::max(limit.rlim_max, limit.rlim_cur + 64);
  rlimit lent{more, more};
  if (prlimit(pid, RLIMIT_NOFILE, &lent, nullptr)) return {};
  return limit;
}

namespace {
bool has_mapped(pid_t pid, const Piece& piece) {
  struct stat st;
  auto regions = process::regions(pid);
  return regions && !fstat(piece.file, &st) && std::ranges::any_of(*regions, [&](const process::Region& r) {
           return r.range.contains({piece.address}) && r.inode == st.st_ino;
         });
}
}  // namespace

// There was something where a new arena was to be mapped: the arena, as the process was forked just when its parent had mapped it, or
// memory of the program. The calls behind it are to be made.
bool Server::map_without(Process& p, CachePc base) {
  auto pieces = p.space->pieces().first(p.memory->mapped);
  auto piece = std::ranges::find_if(pieces, [&](const Piece& x) { return x.is_new && x.address == base.value; });
  if (piece == pieces.end()) return false;
  auto index = static_cast<size_t>(piece - pieces.begin());
  bool is_there = has_mapped(p.pid, *piece);
  if (!is_there && (is_shared(p) || !p.space->give_up(base))) return false;
  p.memory->mapped = index + is_there;
  return true;
}

// The calls were made, or some. Returns whether the thread is to make the rest.
bool Server::called(Process& p, uint32_t slot, uint64_t failed, int64_t result) {
  auto lent = std::exchange(p.limit, {});
  if (lent) prlimit(p.pid, RLIMIT_NOFILE, &*lent, nullptr);
  size_t sent = p.memory->sent;
  if (!failed || failed > sent) return false;
  rt::ThreadBlock* tb = block(slot);
  int error = result < 0 && result > -4096 ? static_cast<int>(-result) : EINVAL;
  if (result == -EMFILE && !lent) p.limit = lend_descriptors(p.pid);
  if (p.limit) {
    std::copy(tb->calls + failed - 1, tb->calls + sent, tb->calls);
    tb->request.calls = p.memory->sent = sent - (failed - 1);
    return true;
  }
  if (result == -EEXIST && map_without(p, {tb->calls[failed - 1].args[0]})) return false;
  end_with_message(p, fmt::format("system call {}: {}", tb->calls[failed - 1].nr, strerror(error)));
  return false;
}

rt::RequestBlock copy_of(const rt::RequestBlock& shared) {
  rt::RequestBlock r{};
  r.state = __atomic_load_n(&shared.state, __ATOMIC_ACQUIRE);
  r.kind = __atomic_load_n(&shared.kind, __ATOMIC_RELAXED);
  for (size_t i = 0; i < std::size(r.args); i++) r.args[i] = __atomic_load_n(&shared.args[i], __ATOMIC_RELAXED);
  return r;
}

void Server::serve(uint32_t slot) {
  if (slot == 0 || slot >= slots_.size()) return;
  if (slots_[slot].state == SlotState::Free || slots_[slot].state == SlotState::Ending) return;
  rt::RequestBlock& shared = block(slot)->request;
  rt::RequestBlock r = copy_of(shared);
  if (r.state != rt::RequestState::Posted) return;
  stats_.requests++;
  current_slot_ = slot;
  if (r.kind == rt::Request::Hello) {
    shared.values[0] = hello(slot, static_cast<pid_t>(r.args[0]), static_cast<pid_t>(r.args[1]));
    if (Process* p = shared.values[0] ? process_of(slot) : nullptr; p && !p->memory->mapped) send_calls(*p, slot);
    return answer(slot);
  }
  Process* p = slots_[slot].state == SlotState::Running ? process_of(slot) : nullptr;
  if (!p || p->is_ended_by_us) return;
  if (r.kind == rt::Request::ThreadEnd) return thread_ended(slot);
  std::shared_ptr<Memory> memory = p->memory;
  if (memory->caller && memory->caller != slot) {
    if (std::ranges::find(memory->waiting, slot) == memory->waiting.end()) memory->waiting.push_back(slot);
    return;
  }
  if (r.kind == rt::Request::Called && memory->caller) {
    if (called(*p, slot, r.args[0], static_cast<int64_t>(r.args[1]))) return answer(slot);
    if (send_calls(*p, slot)) return answer(slot);
    memory->caller = 0;
    p->keeper.close_files();
    if (auto postponed = std::move(slots_[slot].postponed)) r = *postponed;
    if (moving_ && moving_->asking == slot) moving_->is_mapped = true;
  }
  if (is_postponed(*p, slot, r)) return;
  if (must_map_first(*p, slot, r)) {
    slots_[slot].postponed = std::make_unique<rt::RequestBlock>(r);
    send_calls(*p, slot);
    return answer(slot);
  }
  if (r.kind != rt::Request::Called) {
    handle(*p, slot, r);
    send_calls(*p, slot);
    shared.pc = r.pc;
    shared.native = r.native;
    std::copy(std::begin(r.values), std::end(r.values), shared.values);
  }
  answer(slot);
  if (!memory->caller)
    for (uint32_t other : std::exchange(memory->waiting, {})) serve(other);
}

// Will the answer lead to memory that the process has not mapped yet?
bool Server::must_map_first(Process& p, uint32_t slot, const rt::RequestBlock& r) {
  AppPc target;
  if (r.kind == rt::Request::Resume || r.kind == rt::Request::Stale) target = {r.args[0]};
  if (r.kind == rt::Request::Indirect) target = {r.args[1]};
  if (r.kind == rt::Request::Link)
    if (auto exit = p.space->exit(static_cast<uint32_t>(r.args[0]))) target = exit->target;
  if (!target) return false;
  pid_t tid = slots_[slot].tid;
  if (!p.space->find(target) && !p.space->prepare(target, tid, false)) {
    if (!is_shared(p)) p.space->prepare(target, tid, true);
    else if (auto ok = part(p); !ok) end_with_message(p, ok.error().what);  // (the copy grows when it is mapped: see claim)
  }
  auto pieces = p.space->pieces().subspan(p.memory->mapped);
  return std::any_of(pieces.begin(), pieces.end(), [](const Piece& piece) { return !piece.is_change; });
}

void Server::handle(Process& p, uint32_t slot, rt::RequestBlock& r) {
  switch (r.kind) {
    case rt::Request::Link:
      if (auto exit = p.space->exit(static_cast<uint32_t>(r.args[0])); exit && exit->kind == instrument::Exit::Direct) {
        go_on(p, r, exit->target, nullptr);
        if (!r.native && p.space->find(exit->target)) p.space->link_if_alive(static_cast<uint32_t>(r.args[0]), {r.pc});
      }
      break;
    case rt::Request::Stale:
      p.space->forget_changed({r.args[0]}, {r.args[2]});
      reuse_dead(*p.space);
      [[fallthrough]];
    case rt::Request::Resume: go_on(p, r, {r.args[0]}, nullptr); break;
    case rt::Request::Indirect:
      if (auto exit = p.space->exit(static_cast<uint32_t>(r.args[0])); exit && exit->kind != instrument::Exit::Direct)
        go_on(p, r, {r.args[1]}, &*exit);
      break;
    case rt::Request::Where: where(p, r); break;
    case rt::Request::NewThread:
      slots_[slot].child = 0;
      release_lost_children(slots_[slot].pid, slots_[slot].tid);
      r.values[0] = allocate_slot(slots_[slot].pid, slots_[slot].tid);
      if (!r.values[0]) break;
      slots_[r.values[0]].clone_flags = r.args[0];
      slots_[r.values[0]].space = p.space;
      slots_[r.values[0]].memory.mapped = p.memory->mapped;
      slots_[r.values[0]].memory.kernels_choice = p.memory->kernels_choice;
      p.space->tool().begin_thread(memory_of(static_cast<uint32_t>(r.values[0])), memory_of(slot),
                                   !(r.args[0] & CLONE_THREAD), p.space->where({block(slot)->regs.gpr[1]}).app);
      break;
    case rt::Request::NoThread:
      if (r.args[0] < slots_.size() && slots_[r.args[0]].state == SlotState::Reserved &&
          slots_[r.args[0]].tid == slots_[slot].tid)
        free_slot(static_cast<uint32_t>(r.args[0]));
      break;
    case rt::Request::Exec: exec_begins(slot, r.args[0], static_cast<int64_t>(r.args[1])); break;
    case rt::Request::ExecFailed: exec_failed(slots_[slot].tid); break;
    case rt::Request::Change: change(p, {{r.args[0]}, {r.args[1]}}, r.args[2], r.args[3]); break;
    case rt::Request::Give: r.values[0] = give(p, {{r.args[0]}, {r.args[1]}}, static_cast<rt::Giving>(r.args[2])); break;
    case rt::Request::Executable: executable(p, {{r.args[0]}, {r.args[1]}}); break;
    case rt::Request::Quiet:
      p.space->make_all_writable();
      p.space->make_places();
      p.quiet = r.args[0];
      break;
    case rt::Request::Begin: begin(p, slot, r); break;
    case rt::Request::Place:
      r.values[0] =
          place(p, slots_[slot].tid, static_cast<int64_t>(r.args[0]), r.args[1], r.args[2]).value_or(AppPc{}).value;
      break;
    case rt::Request::Mapped:
      if (auto ok = mapped(p, slot, {{r.args[0]}, {r.args[0] + r.args[1]}}, r.args[2], static_cast<int64_t>(r.args[3]));
          !ok)
        end_with_message(p, ok.error().what);
      break;
    case rt::Request::None:
    case rt::Request::Settle:
    case rt::Request::Hello:
    case rt::Request::ThreadEnd:
    case rt::Request::Called: break;
  }
}

namespace {
// A call that missed has pushed its return address already, a return has popped it: where the transfer itself faults, it has not.
uint64_t stack_change(const instrument::Exit& site, rt::Native native) {
  if (native != rt::NativeSite) return 0;
  if (site.kind == instrument::Exit::Call) return 8;
  if (site.kind == instrument::Exit::Return) return -(8ull + site.pops);
  return 0;
}

rt::Pops pops_of(const instrument::Exit& site) {
  if (site.kind == instrument::Exit::FarReturn) return rt::Pops::FarReturn;
  return site.kind == instrument::Exit::InterruptReturn ? rt::Pops::Interrupt : rt::Pops::Little;
}
}  // namespace

// The thread whose request is served leaves dead code for good: not even a signal handler returns to it.
void Server::leave_dead_code(const Space& space) {
  slots_[current_slot_].seen = space.epoch();
  if (!space.has_dead_code()) return;
  for (rt::Interrupted& i : block(current_slot_)->interrupted)
    if (i.cache_pc && space.is_in_dead_code({i.cache_pc})) i.cache_pc = 0;
}

// Where a transfer to `target` goes on: at its translation. A target that is no code is gone to natively, to fault there; one
// that the processor refuses to go to at all faults where the transfer is.
void Server::go_on(Process& p, rt::RequestBlock& r, AppPc target, const instrument::Exit* site) {
  if (p.space->is_full() && !p.space->find(target)) flush(*p.space);
  last_translated_ = p.space;
  r.values[0] = site ? site->target.value : 0;
  r.values[2] = static_cast<uint64_t>(site ? pops_of(*site) : rt::Pops::Little);
  rt::Soon& soon = block(current_slot_)->request.soon;
  auto to = p.space->translate(target, slots_[current_slot_].tid, &soon);  // (the first thread of a process may have ended)
  if (to) {
    if (r.kind != rt::Request::Link) p.space->enter_indirect_target(target, *to);
    r.pc = to->value;
    // What goes through the table arrives where the table sends it.
    bool arrives = r.kind == rt::Request::Indirect || (r.kind == rt::Request::Resume && r.args[1]);
    if (CachePc entry = arrives ? p.space->table_entry(target) : CachePc{}) r.pc = entry.value;
    leave_dead_code(*p.space);
    if (site && site->kind == instrument::Exit::Return) stats_.slow_returns++;
    return;
  }
  if (to.error().exit_status != Space::no_code) end_with_message(p, to.error().what);
  bool canonical = static_cast<int64_t>(target.value << 16) >> 16 == static_cast<int64_t>(target.value);
  bool may_go = canonical && !p.space->is_own(target);  // (there is nothing, as far as the program knows)
  r.native = may_go || !site ? rt::NativeTarget : rt::NativeSite;
  r.pc = target.value;
  r.values[1] = site ? stack_change(*site, r.native) : 0;
}

void Server::where(Process& p, rt::RequestBlock& r) {
  Space::Place at = p.space->where({r.args[0]});
  r.pc = at.app.value;
  r.values[0] = static_cast<uint64_t>(at.place);
  r.values[1] = at.restore;
  r.values[2] = at.spilled;
  r.values[3] = at.resume.value;
  if (p.space->tell_places({r.args[0]})) r.values[1] |= rt::HasPlaces;
}

void Server::change(Process& p, AppRange range, bool has_no_code, uint64_t protection) {
  range = whole_pages(range);
  if (range.end <= range.begin) return;
  constexpr uint64_t of_code = PROT_READ | PROT_EXEC;
  bool is_guarded = (protection & of_code) == of_code && p.space->stays_guarded(range, protection & PROT_WRITE);
  if (p.space->knows(range) && !is_guarded) {
    if (is_shared(p))
      if (auto ok = part(p); !ok) return end_with_message(p, ok.error().what);
    p.space->forget(range);
    reuse_dead(*p.space);
  }
  if (has_no_code && !is_shared(p)) p.space->note_no_code(range);  // (others may have it still)
}

// What is executable may be gone to: nothing else may be found by its low 32 bits from now on. An empty range: it is not known what is.
void Server::executable(Process& p, AppRange range) {
  range = whole_pages(range);
  bool is_known = range.begin < range.end;
  if (is_shared(p) && (!is_known || !p.space->may_add(range)))
    if (auto ok = part(p); !ok) return end_with_message(p, ok.error().what);
  if (is_known && !p.space->has_table_for(range))
    return end_with_message(
        p, fmt::format("code at {:#x}, whose place in weir's table is memory of the program now", range.begin.value));
  if (is_known && p.space->note_code(range)) return;
  if (!is_shared(p)) p.space->find_code(slots_[current_slot_].tid);
}

WaitingCall waits_in(pid_t pid, pid_t tid) {
  std::ifstream file(fmt::format("/proc/{}/task/{}/syscall", pid, tid));
  std::string number, word, last;
  if (!(file >> number) || number == "running" || number == "-1") return {};
  while (file >> word) last = word;
  return {atol(number.c_str()), strtoull(last.c_str(), nullptr, 16)};
}

bool Server::is_out_of_dead_code(uint32_t slot, const Space& space, uint64_t epoch) {
  Slot& s = slots_[slot];
  for (const rt::Interrupted& i : block(slot)->interrupted)  // it will go back there
    if (i.cache_pc && space.is_in_dead_code({i.cache_pc})) return false;
  if (s.seen >= epoch) return true;
  uint64_t now = space.epoch(), pc = waits_in(s.pid, s.tid).behind;
  if (!pc || (pc >= rt::runtime_base && pc < rt::space_base) || space.is_in_dead_code({pc - 1})) return false;
  s.seen = now;
  return true;
}

void Server::flush(Space& space) {
  space.flush();
  reuse_dead(space);  // what was flushed before,
  reuse_dead(space);  // … and then this, which takes a while
}

void Server::reuse_dead(Space& space) {
  uint64_t epoch = space.wants_reuse();
  if (!epoch) return;
  for (uint32_t slot = 1; slot < slots_.size(); slot++) {
    const Slot& s = slots_[slot];
    if (s.state == SlotState::Reserved && s.space.get() == &space) return;
    Process* p = s.state == SlotState::Running ? process_of(slot) : nullptr;
    if (p && p->space.get() == &space && !is_out_of_dead_code(slot, space, epoch)) return;
  }
  take_faults();  // (their places are those of the code as it is now)
  space.reuse_dead();
}

// Does a process with another memory use the space, or is one about to?
bool Server::is_shared(const Process& p) const {
  auto uses = [&](const auto& other) { return other.second.space == p.space && other.second.memory != p.memory; };
  auto will_use = [&](const Slot& s) { return s.space == p.space && !(s.clone_flags & CLONE_VM); };
  return std::any_of(processes_.begin(), processes_.end(), uses) || std::ranges::any_of(slots_, will_use);
}

// The process gets a space of its own: the same code at the same addresses, in memory that nobody shares.
Result<> Server::part(Process& p) {
  TRY(auto own, p.space->copy());
  std::shared_ptr<Space> space = std::move(own);
  for (auto& [pid, other] : processes_)
    if (other.memory == p.memory) other.space = space;
  p.memory->mapped = 0;
  guardian_is_old_ = has_results();
  for (Slot& s : slots_)
    if (s.state == SlotState::Reserved && s.pid == p.pid && (s.clone_flags & CLONE_VM)) s.space = space;
  return {};
}

}  // namespace weir::engine
