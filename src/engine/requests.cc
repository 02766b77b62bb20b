// What a request is answered with: a place to go on at, most often. (Calls that are to be made first: see engine/mapping.h.)

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

Posted Posted::read(const rt::RequestBlock& shared) {
  Posted r{};
  r.state = __atomic_load_n(&shared.state, __ATOMIC_ACQUIRE);
  r.kind = __atomic_load_n(&shared.kind, __ATOMIC_RELAXED);
  for (size_t i = 0; i < std::size(r.args); i++) r.args[i] = __atomic_load_n(&shared.args[i], __ATOMIC_RELAXED);
  return r;
}

void Server::serve(uint32_t slot) {
  if (slot == 0 || slot >= slots_.size()) return;
  if (slots_[slot].state == SlotState::Free || slots_[slot].state == SlotState::Ending) return;
  rt::RequestBlock& shared = block(slot)->request;
  Posted r = Posted::read(shared);
  if (r.state != rt::RequestState::Posted) return;
  stats_.requests++;
  auto tell = [&](const Answer& answer) { std::ranges::copy(answer.words, shared.answer); };
  if (r.is<rt::HelloRequest>()) {
    bool is_known = hello(slot, r.as<rt::HelloRequest>());
    tell(rt::HelloAnswer{is_known});
    Process* p = is_known ? process_of(slot) : nullptr;
    if (p && (!p->memory->mapped || p->memory->has_own_pieces())) send_calls(*p, slot);
    return answer(slot);
  }
  Process* p = slots_[slot].is_running() ? process_of(slot) : nullptr;
  if (!p || p->is_ended_by_us) return;
  if (r.is<rt::ThreadEndRequest>()) return thread_ended(slot);
  std::shared_ptr<Memory> memory = p->memory;
  if (!memory->admits(slot)) return;
  if (r.is<rt::CalledRequest>() && memory->has_caller()) {
    auto has_rest = memory->called(caller(*p, slot), r.as<rt::CalledRequest>(), [&] { return is_shared(*p); });
    if (!has_rest) end_with_message(*p, has_rest.error().what);
    if (has_rest.value_or(false) || send_calls(*p, slot)) return answer(slot);
    if (auto put_off = memory->finish()) r = *put_off;
    if (moving_ && moving_->asking == slot) moving_->is_mapped = true;
  }
  if (is_postponed(*p, slot, r) || awaits_child(slot, r)) return;
  if (must_map_first(*p, slot, r)) {
    memory->put_off(r);
    send_calls(*p, slot);
    return answer(slot);
  }
  if (!r.is<rt::CalledRequest>()) {
    Answer is = handle(*p, slot, r);
    send_calls(*p, slot);
    tell(is);
  }
  answer(slot);
  if (!memory->has_caller())
    for (uint32_t other : memory->take_waiting()) serve(other);
}

// Where the answer to a request leads, as far as that can be told before; none: nowhere. (A thread that may change versions does.)
std::optional<Server::Transfer> Server::transfer_of(const Process& p, uint32_t slot, const Posted& r) const {
  Space& space = *p.space;
  auto wanted_or = [&](Version version) { return slots_[slot].wanted.value_or(version); };
  switch (r.kind) {
    case rt::Request::Resume: {
      auto [pc, how] = r.as<rt::ResumeRequest>();
      Version version = version_of(space, slot);
      if (how == rt::Resuming::AtPoint) return Transfer{.target = {pc}, .version = wanted_or(version), .is_direct = true};
      return Transfer{.target = {pc}, .version = version, .arrives = how == rt::Resuming::Call};
    }
    case rt::Request::Stale: {
      auto [pc, was] = r.as<rt::StaleRequest>();
      return Transfer{.target = {pc}, .version = wanted_or(space.version_of(CachePc{was}))};
    }
    case rt::Request::Indirect: {
      auto [number, target] = r.as<rt::IndirectRequest>();
      auto exit = space.links().exit(static_cast<uint32_t>(number));
      if (!exit || exit->kind == instrument::Exit::Direct) return {};
      return Transfer{.target = {target}, .version = wanted_or(exit->version), .arrives = true, .site = exit};
    }
    case rt::Request::Link: {
      auto exit = space.links().exit(static_cast<uint32_t>(r.as<rt::LinkRequest>().exit));
      if (!exit || exit->kind != instrument::Exit::Direct) return {};
      return Transfer{.target = exit->target, .version = wanted_or(exit->version), .is_direct = true};
    }
    default: return {};
  }
}

// That the thread says it runs in.
Version Server::version_of(const Space& space, uint32_t slot) const {
  uint32_t version = __atomic_load_n(&block(slot)->code_version, __ATOMIC_RELAXED);
  return space.has_version(version) ? static_cast<Version>(version) : Version{0};
}

// Will the answer lead to memory that the process has not mapped yet?
bool Server::must_map_first(Process& p, uint32_t slot, const Posted& r) {
  auto transfer = transfer_of(p, slot, r);
  if (!transfer || !transfer->target) return false;
  auto [target, version] = std::pair(transfer->target, transfer->version);
  pid_t tid = slots_[slot].tid;
  if (!p.space->find(target, version) && !p.space->prepare(target, version, tid, false)) {
    if (!is_shared(p)) p.space->prepare(target, version, tid, true);
    else if (auto ok = part(p); !ok) end_with_message(p, ok.error().what);  // (the copy grows when it is mapped: see claim)
  }
  auto pieces = p.space->pieces().subspan(p.memory->mapped);
  return std::any_of(pieces.begin(), pieces.end(), [](const Piece& piece) { return !piece.is_change; });
}

Answer Server::handle(Process& p, uint32_t slot, const Posted& r) {
  switch (r.kind) {
    case rt::Request::Link: return link(p, slot, r);
    case rt::Request::Stale: renew(p, r.as<rt::StaleRequest>()); [[fallthrough]];
    case rt::Request::Indirect:
    case rt::Request::Resume:
      if (auto transfer = transfer_of(p, slot, r)) return go_on(p, slot, *transfer);
      return rt::GoOn{};
    case rt::Request::Where: return where(p, r.as<rt::WhereRequest>());
    case rt::Request::NewThread: return begin_thread(p, slot, r.as<rt::NewThreadRequest>());
    case rt::Request::Forked: break;
    case rt::Request::NoThread: drop_thread(slot, r.as<rt::NoThreadRequest>()); break;
    case rt::Request::Exec: exec_begins(slot, r.as<rt::ExecRequest>()); break;
    case rt::Request::ExecFailed: exec_failed(slots_[slot].tid); break;
    case rt::Request::Change: change(p, r.as<rt::ChangeRequest>()); break;
    case rt::Request::Give: return rt::GiveAnswer{give(p, r.as<rt::GiveRequest>())};
    case rt::Request::Executable: executable(p, slot, r.as<rt::ExecutableRequest>()); break;
    case rt::Request::Quiet: begin_filter(p, r.as<rt::QuietRequest>()); break;
    case rt::Request::Begin: return begin(p, slot);
    case rt::Request::Place:
      return rt::ImagePlace{place(p, slots_[slot].tid, r.as<rt::PlaceRequest>()).value_or(AppPc{}).value};
    case rt::Request::Mapped:
      if (auto ok = mapped(p, slot, r.as<rt::MappedRequest>()); !ok) end_with_message(p, ok.error().what);
      break;
    case rt::Request::Tool: return p.space->tool().answer(asking(slot), r.as<rt::ToolRequest>());
    case rt::Request::Drain: p.space->tool().drain(asking(slot)); break;
    case rt::Request::None:
    case rt::Request::Settle:
    case rt::Request::Hello:
    case rt::Request::ThreadEnd:
    case rt::Request::Called: break;
  }
  return {};
}

rt::GoOn Server::link(Process& p, uint32_t slot, const Posted& r) {
  auto transfer = transfer_of(p, slot, r);
  if (!transfer) return {};
  auto number = static_cast<uint32_t>(r.as<rt::LinkRequest>().exit);
  bool is_its = p.space->links().exit(number)->version == transfer->version;
  rt::GoOn to = go_on(p, slot, *transfer);
  if (!to.native && is_its && p.space->find(transfer->target, transfer->version))
    p.space->links().link_if_alive(number, {to.pc});
  return to;
}

void Server::renew(Process& p, const rt::StaleRequest& r) {
  p.space->forget_changed({r.pc}, {r.was});
  reuse_dead(*p.space);
}

// (The target can write there.)
std::vector<rt::OpenCall> Server::open_calls(uint32_t slot) const {
  auto& calls = *reinterpret_cast<const rt::OpenCalls*>(memory_of(slot) + rt::open_calls_offset);
  uint32_t count = std::min(__atomic_load_n(&calls.count, __ATOMIC_RELAXED), rt::max_open_calls);
  return {calls.calls, calls.calls + count};
}

// A process that was forked returns from the calls that it began in.
void Server::copy_open_calls(uint32_t parent, uint32_t child) {
  const rt::Awaited& awaited = block(parent)->awaited;
  if (awaited.moved == ~uint64_t{0}) return;
  auto from = open_calls(parent);
  auto& to = *reinterpret_cast<rt::OpenCalls*>(memory_of(child) + rt::open_calls_offset);
  to.count = static_cast<uint32_t>(from.size());
  for (size_t i = 0; i < from.size(); i++) {
    to.calls[i] = from[i];
    to.calls[i].is_inherited = 1;
    to.suspended += from[i].is_suspended;
  }
  block(child)->awaited = awaited;
}

rt::SlotAnswer Server::begin_thread(Process& p, uint32_t slot, const rt::NewThreadRequest& r) {
  slots_[slot].child = 0;
  release_lost_children(slots_[slot].pid, slots_[slot].tid);
  uint32_t child = allocate_slot(slots_[slot].pid, slots_[slot].tid);
  if (!child) return {};
  slots_[child].clone_flags = r.clone_flags;
  slots_[child].space = p.space;
  slots_[child].memory = p.memory->copy();
  bool is_fork = !(r.clone_flags & CLONE_THREAD);
  if (is_fork && p.space->names_functions()) copy_open_calls(slot, child);
  p.space->tool().begin_thread({.memory = memory_of(child),
                                .parent = memory_of(slot),
                                .is_fork = is_fork,
                                .pc = p.space->where({block(slot)->regs.gpr[1]}).app});
  return {child};
}

instrument::Asking Server::asking(uint32_t slot) const {
  return {static_cast<uint32_t>(slots_[slot].pid), static_cast<uint32_t>(slots_[slot].tid), memory_of(slot)};
}

// Has the child not come yet, which is to get copies of regions, as they are now?
bool Server::awaits_child(uint32_t slot, const Posted& r) {
  if (!r.is<rt::ForkedRequest>()) return false;
  auto [child, pid] = r.as<rt::ForkedRequest>();
  if (child >= slots_.size() || !slots_[child].is_reserved() || slots_[child].tid != slots_[slot].tid) return false;
  const Process* p = process_of(slot);
  bool is_lost = p->elsewhere ? !has_silent_child(p->pid, slots_[slot].tid) : process::has_ended(static_cast<pid_t>(pid));
  if (is_lost) return false;
  if (std::ranges::find(forking_, slot) == forking_.end()) forking_.push_back(slot);
  return true;
}

void Server::drop_thread(uint32_t slot, const rt::NoThreadRequest& r) {
  if (r.slot >= slots_.size()) return;
  const Slot& child = slots_[r.slot];
  if (child.is_reserved() && child.tid == slots_[slot].tid) free_slot(static_cast<uint32_t>(r.slot));
}

void Server::begin_filter(Process& p, const rt::QuietRequest& r) {
  if (p.space->has_version(1) && is_shared(p))
    if (auto ok = part(p); !ok) return end_with_message(p, ok.error().what);
  for (Version version = 1; p.space->has_version(version); version++)
    for (AppRange code : p.space->known_code()) p.space->prepare(code.begin, version, p.pid, true);
  p.space->make_all_writable();
  p.space->make_places();
  p.quiet = r.is_second;
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

// The thread leaves dead code for good: not even a signal handler returns to it.
void Server::leave_dead_code(uint32_t slot, const Space& space) {
  slots_[slot].seen = space.epoch();
  if (!space.has_dead_code()) return;
  for (rt::Interrupted& i : block(slot)->interrupted)
    if (i.cache_pc && space.is_in_dead_code({i.cache_pc})) i.cache_pc = 0;
}

// Where a transfer goes on: at the translation of its target. A target that is no code is gone to natively, to fault there; one
// that the processor refuses to go to at all faults where the transfer is.
rt::GoOn Server::go_on(Process& p, uint32_t slot, const Transfer& transfer) {
  const auto& [target, version, is_direct, arrives, site] = transfer;
  if (p.space->is_full() && !p.space->find(target, version)) flush(*p.space);
  last_translated_ = p.space;
  rt::GoOn answer{};
  if (site) answer.site = site->target.value, answer.pops = pops_of(*site);
  rt::Soon& soon = block(slot)->request.soon;
  auto to = p.space->translate(target, version, slots_[slot].tid, &soon);  // (the first thread of a process may have ended)
  if (to) {
    if (!is_direct) p.space->enter_indirect_target(target, *to);
    CachePc entry = arrives ? p.space->table_entry(target, version) : CachePc{};
    answer.pc = (entry ? entry : *to).value;
    arrive_in(slot, version);
    leave_dead_code(slot, *p.space);
    if (site && site->kind == instrument::Exit::Return) stats_.slow_returns++;
    return answer;
  }
  if (to.error().kind != ErrorKind::NoCode) end_with_message(p, to.error().what);
  bool canonical = static_cast<int64_t>(target.value << 16) >> 16 == static_cast<int64_t>(target.value);
  bool may_go = canonical && !p.space->is_own(target);  // (there is nothing, as far as the program knows)
  answer.native = may_go || !site ? rt::NativeTarget : rt::NativeSite;
  answer.pc = target.value;
  if (site) answer.stack_change = stack_change(*site, answer.native);
  return answer;
}

rt::WhereAnswer Server::where(Process& p, const rt::WhereRequest& r) {
  Space::Place at = p.space->where({r.pc});
  uint64_t has_places = p.space->tell_places({r.pc}) ? uint64_t{rt::HasPlaces} : 0;
  return {at.app.value, at.place, at.restore | has_places, at.spilled, at.resume.value};
}

void Server::change(Process& p, const rt::ChangeRequest& r) {
  AppRange range = whole_pages(r.range);
  if (range.end <= range.begin) return;
  constexpr uint64_t of_code = PROT_READ | PROT_EXEC;
  bool is_guarded = (r.protection & of_code) == of_code && p.space->stays_guarded(range, r.protection & PROT_WRITE);
  if (p.space->knows(range) && !is_guarded) {
    if (is_shared(p))
      if (auto ok = part(p); !ok) return end_with_message(p, ok.error().what);
    p.space->forget(range);
    reuse_dead(*p.space);
  }
  if (r.has_no_code && !is_shared(p)) p.space->note_no_code(range);  // (others may have it still)
}

// What is executable may be gone to: nothing else may be found by its low 32 bits from now on.
void Server::executable(Process& p, uint32_t slot, const rt::ExecutableRequest& r) {
  AppRange range = whole_pages(r.range);
  bool is_known = range.begin < range.end;
  if (is_shared(p) && (!is_known || !p.space->may_add(range)))
    if (auto ok = part(p); !ok) return end_with_message(p, ok.error().what);
  if (is_known && !p.space->has_table_for(range))
    return end_with_message(
        p, fmt::format("code at {:#x}, whose place in weir's table is memory of the program now", range.begin.value));
  if (is_known && p.space->note_code(range)) return;
  if (!is_shared(p)) p.space->find_code(slots_[slot].tid);
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
    if (s.is_reserved() && s.space.get() == &space) return;
    Process* p = s.is_running() ? process_of(slot) : nullptr;
    if (p && p->space.get() == &space && !is_out_of_dead_code(slot, space, epoch)) return;
  }
  take_faults();  // (their places are those of the code as it is now)
  space.reuse_dead();
}

// Does a process with another memory use the space, or is one about to?
bool Server::is_shared(const Process& p) const {
  auto uses = [&](const auto& other) { return other.second.space == p.space && other.second.memory != p.memory; };
  auto will_use = [&](const Slot& s) { return s.space == p.space && !s.shares_memory(); };
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
    if (s.is_reserved() && s.pid == p.pid && s.shares_memory()) s.space = space;
  return {};
}

}  // namespace weir::engine
