// Memory that the program wants, and that is ours: it is given what Weir can do without, and the rest by moving.
//
// A move: all threads of the process but the one that asks are stopped, and brought to exact places of the program, as for detaching (detach.cc). The
// process gets another space, whose table and arenas lie elsewhere; the thread that asks unmaps the old one and maps the new one, and then the others
// go on there.

#include <poll.h>
#include <sys/syscall.h>

#include <algorithm>

#include "engine/server.h"

namespace weir::engine {

namespace {
constexpr auto patience = std::chrono::seconds(10);
constexpr int64_t syscall_length = 2;
constexpr AppRange blocks = {{rt::blocks_base}, {rt::blocks_base + rt::blocks_size}};

uint32_t slot_of(AppPc pc) { return static_cast<uint32_t>(static_cast<uint64_t>(pc - blocks.begin) / rt::block_stride); }

struct SlotRange {
  uint32_t first = 0, last = 0;
};
SlotRange slots_of(AppRange range) {
  if (!range.overlaps(blocks)) return {};
  return {slot_of(std::max(range.begin, blocks.begin)), slot_of(std::min(range.end, blocks.end) + -1) + 1};
}
}  // namespace

// The runtime, and the blocks of threads that there are, stay where they are.
bool Server::can_ever_give(AppRange range) const {
  if (range.end <= range.begin || range.overlaps({{rt::runtime_base}, blocks.begin})) return false;
  SlotRange wanted = slots_of(range);
  for (uint32_t slot = wanted.first; slot < std::min<size_t>(wanted.last, slots_.size()); slot++)
    if (slot == 0 || slots_[slot].state != SlotState::Free) return false;
  return true;
}

// A thread block that was given away in one process is not used in any.
bool Server::give(Process& p, AppRange range, rt::Giving how) {
  range = whole_pages(range);
  if (!can_ever_give(range)) return false;
  if (is_shared(p))
    if (auto ok = part(p); !ok) return end_with_message(p, ok.error().what), false;
  auto parts = p.space->parts_to_give(range, how);
  if (!parts) return false;
  p.space->give(*parts, p.memory->mapped);
  SlotRange slots = slots_of(range);
  given_slots_.resize(rt::max_slots);
  std::fill(given_slots_.begin() + slots.first, given_slots_.begin() + slots.last, true);
  for (const AppRange& part : *parts) p.calls.push_back({SYS_munmap, {part.begin.value, part.size()}, {}, 0});
  return true;
}

// Does the request take what Weir cannot do without where it is?
bool Server::wants_move(const Process& p, const rt::RequestBlock& r) const {
  if (moving_ || p.quiet) return false;
  AppRange range = whole_pages({{r.args[0]}, {r.args[1]}});
  bool is_wanted = r.kind == rt::Request::Give && r.args[2] == static_cast<uint64_t>(rt::Giving::All);
  if (is_wanted) return can_ever_give(range) && !p.space->parts_to_give(range, rt::Giving::All);
  if (r.kind == rt::Request::Mapped) range = whole_pages({{r.args[0]}, {r.args[0] + r.args[1]}});
  bool is_code = r.kind == rt::Request::Executable || r.kind == rt::Request::Mapped;
  return is_code && (!p.space->has_table_for(range) || p.space->is_in_table(range));  // (there is no room for an arena there)
}

// Requests of all but one thread. (The loop may have taken some out of `posted` already, and be about to serve them.)
void Server::serve_others(uint32_t asking) {
  for (uint32_t slot = 1; slot < slots_.size(); slot++)
    if (slot != asking && slots_[slot].state != SlotState::Free) serve(slot);
}

// Threads that are in the runtime go on until they are out of there, and are served meanwhile.
bool Server::stop_others(Process& p, uint32_t slot) {
  using namespace std::chrono;
  auto last = steady_clock::now() + patience, end = last;
  pid_t asking = slots_[slot].tid;
  auto serve_on = [&] {
    serve_others(slot);
    return steady_clock::now() < end;
  };
  microseconds pause(20);
  for (bool ready = false; !ready; pause = std::min<microseconds>(2 * pause, milliseconds(20))) {
    ready = true;
    if (steady_clock::now() > last) return false;
    end = last;
    if (!moving_->threads.stop(serve_on) || moving_->threads.executed()) return false;
    moving_->others.clear();
    for (pid_t tid : moving_->threads.tids()) {
      int signal = 0;
      if (tid == asking) continue;
      if (auto at = leave_cache(p, tid, signal)) {
        moving_->others.push_back({tid, at->regs});
        continue;
      }
      moving_->threads.go_on(tid, signal);
      ready = false;
    }
    end = steady_clock::now() + pause;
    for (timespec t{0, 20'000}; !ready && serve_on(); nanosleep(&t, nullptr)) moving_->threads.look();
  }
  return true;
}

// What the process is to go on in, and where its threads do.
Result<> Server::prepare_move(Process& p, uint32_t slot, const rt::RequestBlock& r) {
  pid_t asking = slots_[slot].tid;
  if (!stop_others(p, slot)) return fail("its threads cannot be stopped");
  bool is_give = r.kind == rt::Request::Give;
  AppRange wanted = is_give ? whole_pages({{r.args[0]}, {r.args[1]}}) : AppRange{};
  TRY(moving_->space, p.space->begin_elsewhere(wanted, !is_give));
  AppPc next = p.space->where({block(slot)->regs.gpr[1]}).app + syscall_length;
  CachePc behind = moving_->space->behind_system_call(next, asking);
  if (!behind) return fail("the place of its call is not known");
  moving_->resume = behind + -syscall_length;
  for (auto& [tid, regs] : moving_->others) TRY_VOID(enter_cache(*moving_->space, tid, regs));
  return {};
}

// Has the process go on in another space. The thread that asks has calls to make then, and finish_move() is to be called. False: it
// cannot be done.
bool Server::move(Process& p, uint32_t slot, const rt::RequestBlock& r) {
  auto has_its_memory = [&](const auto& other) { return other.second.memory == p.memory; };
  if (std::ranges::count_if(processes_, has_its_memory) > 1) return false;
  moving_ = std::make_unique<Move>(p.pid, slot);
  auto prepared = prepare_move(p, slot, r);
  current_slot_ = slot;
  if (!prepared) {
    say("{}: it cannot be moved: {}", p.program, prepared.error().what);
    moving_.reset();
    return false;
  }
  moving_->threads.end_with_us();
  for (const AppRange& own : p.space->own())
    if (!own.overlaps(blocks)) p.calls.push_back({SYS_munmap, {own.begin.value, own.size()}, {}, 0});
  ended_.push_back(std::exchange(p.space, moving_->space));
  p.memory->mapped = 0;
  block(slot)->regs.gpr[1] = moving_->resume.value;
  for (uint32_t own : p.slots) {
    slots_[own].seen = 0;
    for (rt::Interrupted& i : block(own)->interrupted) i.cache_pc = 0;
  }
  guardian_is_old_ = has_results();
  moving_->threads.go_on(slots_[slot].tid);
  return true;
}

// The new space is mapped.
void Server::let_others_go_on() {
  for (auto& [tid, regs] : moving_->others) {
    for (uint32_t slot = 1; slot < slots_.size(); slot++)
      if (slots_[slot].state == SlotState::Running && slots_[slot].tid == tid)
        regs.gs_base = rt::blocks_base + slot * rt::block_stride;
    (void)process::Tracee(tid).set_registers(regs);
  }
  moving_.reset();
}

void Server::finish_move() {
  auto last = std::chrono::steady_clock::now() + patience;
  while (moving_) {
    serve(moving_->asking);
    if (!moving_) return;
    moving_->threads.look();
    auto p = processes_.find(moving_->pid);
    pollfd gone{p == processes_.end() ? -1 : p->second.pidfd.get(), POLLIN, 0};
    bool is_gone = p == processes_.end() || poll(&gone, 1, 0) > 0;
    if (!is_gone && std::chrono::steady_clock::now() < last) continue;
    if (!is_gone) end_with_message(p->second, "it does not come to move");
    moving_.reset();
  }
}

}  // namespace weir::engine
