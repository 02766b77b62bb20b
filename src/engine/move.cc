// Memory that the program wants, and that is ours: it is given what Weir can do without, and the rest by moving.
//
// A move is made by the loop, never in the middle of another request. The thread that asks goes through
//
//   waiting    Its request is not answered yet. Of all that share the memory, requests that begin a thread, a process or a program, or install a filter,
//              wait from now on, too (`parked_`). It waits until none of them is executing another program already.
//   stopping   All threads are stopped. Who is in the runtime goes on, and is served, until all rest: at an exact place of the program, as for detaching
//              (detach.cc), or in the runtime, in a system call, with a request that waits for a move, or in vfork, waiting for the child.
//   mapping    There is another space, whose table and arenas lie elsewhere. The thread unmaps the old one and maps the new one.
//   over       Its request is answered. The others go on at the same places in the new space; what was parked is answered.
//
// Whatever fails, the request is answered in the end, without a move.

#include <sched.h>
#include <sys/syscall.h>

#include <algorithm>
#include <filesystem>

#include "engine/server.h"

namespace weir::engine {

namespace {
constexpr auto patience = std::chrono::seconds(30);
constexpr int64_t syscall_length = 2;
constexpr AppRange blocks = {{rt::blocks_base}, {rt::blocks_base + rt::blocks_size}};

// Does the process have other threads than this one?
bool has_others(pid_t pid, pid_t tid) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), none))
    if (pid_t other = atoi(entry.path().filename().c_str()); other != tid && !process::has_ended(other)) return true;
  return false;
}
}  // namespace

// The runtime, and the blocks of threads that there are, stay where they are.
bool Server::can_ever_give(AppRange range) const {
  return range.begin < range.end && !range.overlaps({{rt::runtime_base}, blocks.begin}) && slots_.can_give(range);
}

bool Server::give(Process& p, const rt::GiveRequest& r) {
  AppRange range = whole_pages(r.range);
  if (!can_ever_give(range)) return false;
  if (is_shared(p))
    if (auto ok = part(p); !ok) return end_with_message(p, ok.error().what), false;
  auto parts = p.space->parts_to_give(range, r.how);
  if (!parts) return false;
  p.space->give(*parts, p.memory->mapped);
  slots_.give(range);
  for (const AppRange& part : *parts) p.calls.push_back({SYS_munmap, {part.begin.value, part.size()}, {}, 0});
  return true;
}

// Does the request take what Weir cannot do without where it is?
bool Server::wants_move(const Process& p, const Posted& r) const {
  auto is_taken = [&](const rt::GiveRequest& wanted) {
    AppRange range = whole_pages(wanted.range);
    return wanted.how == rt::Giving::All && can_ever_give(range) && !p.space->has_tool_region_in(range) &&
           !p.space->parts_to_give(range, rt::Giving::All);
  };
  auto has_no_place = [&](const rt::Range& code) {
    AppRange range = whole_pages(code);
    return !p.space->has_table_for(range) || p.space->is_in_table(range);  // (there is no room for an arena there)
  };
  bool wants = false;
  if (r.is<rt::GiveRequest>()) wants = is_taken(r.as<rt::GiveRequest>());
  if (r.is<rt::ExecutableRequest>()) wants = has_no_place(r.as<rt::ExecutableRequest>().range);
  if (r.is<rt::MappedRequest>()) {
    auto code = r.as<rt::MappedRequest>();
    wants = has_no_place({code.begin, code.begin + code.size});
  }
  if (!wants) return false;
  return std::ranges::none_of(processes_,
                              [&](const auto& other) { return other.second.memory == p.memory && other.second.quiet; });
}

// Is the memory to move, or does it?
bool Server::is_to_move(const Memory& memory) const {
  auto is_its = [&](uint32_t slot) {
    auto p = processes_.find(slots_[slot].pid);
    return p != processes_.end() && p->second.memory.get() == &memory;
  };
  return (moving_ && moving_->memory.get() == &memory) || std::ranges::any_of(movers_, is_its);
}

// Such a request is answered when the process has moved. All are made in system calls of the program's that the runtime sees.
bool Server::is_postponed(const Process& p, uint32_t slot, const Posted& r) {
  if (moving_ && moving_->asking == slot) return false;
  bool begins = r.is<rt::NewThreadRequest>() || r.is<rt::ExecRequest>() || r.is<rt::QuietRequest>();
  bool wants = wants_move(p, r);
  if (!wants && (!begins || !is_to_move(*p.memory))) return false;
  std::vector<uint32_t>& list = wants ? movers_ : parked_;
  if (std::ranges::find(list, slot) == list.end()) list.push_back(slot);
  return true;
}

// We hold its thread for that: see exec_begins().
bool Server::is_executing(const Memory& memory) {
  return std::ranges::any_of(seized_, [&](const auto& seized) {
    uint32_t slot = slots_.of_thread(seized.first);
    Process* p = slot ? process_of(slot) : nullptr;
    return p && p->memory.get() == &memory;
  });
}

// One of those that are wanted, if one can begin.
bool Server::make_move() {
  auto is_ready = [&](uint32_t slot) {
    Process* p = process_of(slot);
    return detaching_ || !p || !is_executing(*p->memory);
  };
  auto mover = std::ranges::find_if(movers_, is_ready);
  if (mover == movers_.end()) return false;
  uint32_t slot = *mover;
  movers_.erase(mover);
  Posted r = Posted::read(block(slot)->request);
  Process* p = slots_[slot].is_running() && r.state == rt::RequestState::Posted ? process_of(slot) : nullptr;
  if (p && !p->is_ended_by_us && wants_move(*p, r)) move(*p, slot, r);
  else serve(slot);  // another move was enough, or it is gone
  for (uint32_t other : std::exchange(parked_, {})) serve(other);
  return true;
}

void Server::move(Process& p, uint32_t slot, const Posted& r) {
  moving_ = std::make_unique<Move>(slot, p.memory);
  if (auto prepared = prepare_move(p, r)) {
    change_spaces(p);
    p.memory->put_off(r);
    send_calls(p, slot);
    answer(slot);
    await_mapping(p);
    let_others_go_on();
  } else {
    if (!process::has_ended(slots_[slot].tid)) say("{}: it cannot be moved: {}", p.run.program, prepared.error().what);
    serve(slot);
  }
  moving_.reset();
}

// A thread in vfork cannot be stopped before its child has executed a program, or ended.
bool Server::waits_for_child(uint32_t slot) const {
  const Slot& s = slots_[slot];
  if (!s.child) return false;
  auto [number, behind] = waits_in(s.pid, s.tid);
  bool is_clone = number == SYS_clone || number == SYS_clone3 || number == SYS_vfork;
  return is_clone && behind - rt::runtime_base < header_.image_size;
}

bool Server::rests_in_runtime(uint32_t slot) const {
  auto has = [&](const std::vector<uint32_t>& slots) { return std::ranges::find(slots, slot) != slots.end(); };
  return slot == moving_->asking || has(movers_) || has(parked_) || waits_for_child(slot);
}

// Is there a process with the memory that is not stopped, as it has said its first word just now, or not yet?
bool Server::has_newborn(const Memory& memory) const {
  for (auto& [pid, p] : processes_)
    if (p.memory.get() == &memory && !moving_->threads.contains(pid)) return true;
  return std::ranges::any_of(slots_, [&](const Slot& s) {
    if (!s.is_reserved() || !s.shares_memory() || s.is_thread()) return false;
    auto p = processes_.find(s.pid);
    return p != processes_.end() && p->second.memory.get() == &memory;
  });
}

// All threads are stopped. Do they rest? Those that do not go on. (What one has asked is answered first, so that it can be stepped out of the runtime.)
bool Server::all_rest(Process& p) {
  serve_posted();
  bool rest = !p.memory->has_caller() && !has_newborn(*p.memory);
  moving_->others.clear();
  moving_->resting = {moving_->asking};
  for (auto& [pid, threads] : moving_->threads)
    for (pid_t tid : threads.tids()) {
      int signal = 0;
      uint32_t slot = slots_.of_thread(tid);
      if (slot == moving_->asking) continue;
      if (slot && rests_in_runtime(slot)) {
        moving_->resting.push_back(slot);
      } else if (auto at = leave_cache(p, tid, signal, Leave::ForOtherSpace)) {
        if (at->slot && !at->is_native) moving_->others.push_back(*at);
      } else {
        if (std::exchange(moving_->waits, false)) serve(slot);  // (it may not have set its bit yet)
        else threads.go_on(tid, signal);
        rest = false;
      }
    }
  return rest;
}

// One that was let go on must come to run before it is stopped again: ever more time.
Result<> Server::stop_others(Process& p) {
  using namespace std::chrono;
  auto last = steady_clock::now() + patience, end = last;
  auto serve_on = [&] {
    serve_posted();
    return steady_clock::now() < end;
  };
  auto may_stay = [&](pid_t tid) {
    uint32_t slot = slots_.of_thread(tid);
    return slot && waits_for_child(slot);
  };
  for (microseconds pause(20);; pause = std::min<microseconds>(2 * pause, milliseconds(20))) {
    if (steady_clock::now() > last) return fail("a thread of it does not come out of weir's runtime");
    end = last;
    for (auto& [pid, other] : processes_)
      if (other.memory == p.memory) moving_->threads.try_emplace(pid, pid);
    for (auto& [pid, threads] : moving_->threads) {
      auto stopped = threads.stop(serve_on, may_stay);
      if (threads.executed() && pid == p.pid) return fail("it executes another program");
      if (!stopped && has_others(pid, slots_[moving_->asking].tid)) return stopped;
    }
    if (all_rest(p)) return {};
    moving_->steps_out = pause > microseconds(200);
    end = std::min(last, steady_clock::now() + pause);
    for (timespec t{0, 20'000}; serve_on(); nanosleep(&t, nullptr))
      for (auto& [pid, threads] : moving_->threads) threads.look();
  }
}

// What the process is to go on in, and where its threads do.
Result<> Server::prepare_move(Process& p, const Posted& r) {
  TRY_VOID(stop_others(p));
  bool is_give = r.is<rt::GiveRequest>();
  AppRange wanted = is_give ? whole_pages(r.as<rt::GiveRequest>().range) : AppRange{};
  TRY(moving_->space, p.space->begin_elsewhere(wanted, !is_give));
  auto place_of_call = [&](AppPc call, uint32_t slot) -> Result<CachePc> {
    CachePc behind =
        moving_->space->behind_system_call(call + syscall_length, version_of(*moving_->space, slot), slots_[slot].tid);
    if (!behind) return fail("the place of a call is not known");
    return behind + -syscall_length;
  };
  for (uint32_t slot : moving_->resting) {
    TRY(CachePc call, place_of_call(p.space->where({block(slot)->regs.gpr[1]}).app, slot));
    moving_->calls.push_back(call);
  }
  for (Leaving& l : moving_->others) {
    if (!l.makes_call) {
      TRY_VOID(enter_cache(*moving_->space, version_of(*moving_->space, l.slot), l.tid, l.regs));
      continue;
    }
    TRY(CachePc call, place_of_call({l.regs.rip}, l.slot));
    l.regs.rip = call.value;
  }
  return {};
}

// From here on there is no way back.
void Server::change_spaces(Process& p) {
  for (auto& [pid, threads] : moving_->threads) threads.end_with_us();
  for (const AppRange& own : p.space->own())
    if (!own.overlaps(blocks) && !p.space->has_tool_region_in(own))
      p.calls.push_back({SYS_munmap, {own.begin.value, own.size()}, {}, 0});
  take_faults();
  std::shared_ptr<Space> old = p.space;
  for (auto& [pid, other] : processes_) {
    if (other.memory != p.memory) continue;
    other.space = moving_->space;
    for (uint32_t slot : other.slots) {
      slots_[slot].seen = 0;
      for (rt::Interrupted& i : block(slot)->interrupted) i.cache_pc = 0;
      for (rt::HandlerEntry& e : block(slot)->handlers) e = {};
    }
  }
  if (old.use_count() == 1) ended_.push_back(std::move(old));
  p.memory->mapped = 0;
  for (size_t i = 0; i < moving_->resting.size(); i++) block(moving_->resting[i])->regs.gpr[1] = moving_->calls[i].value;
  guardian_is_old_ = has_results();
}

// The thread that asks makes its calls. (A stop of the whole process is for later.)
void Server::await_mapping(Process& p) {
  pid_t tid = slots_[moving_->asking].tid;
  auto its = moving_->threads.find(p.pid);
  auto last = std::chrono::steady_clock::now() + patience;
  for (uint32_t looks = 1; !moving_->is_mapped; looks++) {
    if (its != moving_->threads.end()) its->second.go_on(tid);
    if (serve_posted()) continue;
    if (its != moving_->threads.end()) its->second.look();
    if (looks % 256 == 0 && process::has_ended(tid)) return;
    if (std::chrono::steady_clock::now() > last) return end_with_message(p, "it does not come to move");
    if (looks > 64) sched_yield();
  }
}

// The new space is mapped.
void Server::let_others_go_on() {
  for (Leaving& l : moving_->others) {
    l.regs.gs_base = Slots::address(l.slot);
    (void)process::Tracee(l.tid).set_registers(l.regs);
  }
}

}  // namespace weir::engine
