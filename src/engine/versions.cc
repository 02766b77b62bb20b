// Threads that change versions (instrument::Version), other than by a probe that says so.
//
// A thread that is wanted in another version goes on there with the next answer of Weir's that leads it to the begin of a block. One that asks nothing
// is stopped, and stepped to such a place; there its registers are the program's, and it is sent to the runtime (rt_sent), which asks. One that
// waits in a system call is sent to the same call in the runtime (rt_allowed): the kernel begins it again there, or ends it, and behind it the runtime asks.
// One that is in the runtime is left alone: it will ask, or it will be met elsewhere.

#include <sys/ptrace.h>
#include <sys/wait.h>

#include <algorithm>
#include <set>

#include "engine/server.h"
#include "process/threads.h"

namespace weir::engine {

namespace {
using std::chrono::steady_clock;
constexpr auto patience = std::chrono::milliseconds(5);       // for a thread that is to stop
constexpr auto first_pause = std::chrono::microseconds(100);  // before it is tried again to meet one; ever longer
constexpr auto longest_pause = std::chrono::milliseconds(20);
constexpr auto longest_wait = std::chrono::milliseconds(100);

bool ignores_traps(pid_t tid) {
  return strtoull(process::status_word(tid, "SigIgn").c_str(), nullptr, 16) >> (SIGTRAP - 1) & 1;
}

// The program counts the steps of this thread: ours would be missing.
bool steps_itself(pid_t tid) {
  constexpr uint64_t trap_flag = 0x100;
  auto regs = process::Tracee(tid).registers();
  return regs && (regs->eflags & trap_flag);
}

// A stopped thread gets the signal, and is stopped again. Returns the signal that it is stopped by then, if there is one.
int deliver(pid_t tid, int signal) {
  ptrace(PTRACE_CONT, tid, 0, signal);
  ptrace(PTRACE_INTERRUPT, tid, 0, 0);
  auto status = process::wait_stop(tid);
  return status && !(*status >> 16) ? WSTOPSIG(*status) : 0;
}
}  // namespace

// What a tool sees of its threads, and may do with them.
class ThreadMoves : public instrument::Moves {
 public:
  ThreadMoves(Server& server, const Space& space) : server_(server), space_(space) {}

  std::vector<Thread> threads() const override {
    std::vector<Thread> all;
    for (uint32_t slot = 1; slot < server_.slots_.size(); slot++)
      if (const Slot& s = server_.slots_[slot]; is_its(slot))
        all.push_back({static_cast<uint32_t>(s.pid), static_cast<uint32_t>(s.tid), server_.version_of(space_, slot),
                       s.wanted.has_value()});
    return all;
  }
  void move(uint32_t tid, Version version) override {
    CHECK(space_.has_version(version));
    uint32_t slot = server_.slots_.of_thread(static_cast<pid_t>(tid));
    if (slot && is_its(slot)) server_.want(slot, version);
  }

 private:
  bool is_its(uint32_t slot) const {
    Process* p = server_.slots_[slot].is_running() ? server_.process_of(slot) : nullptr;
    return p && p->has_begun && !p->left_alone && !p->is_ended_by_us && p->space.get() == &space_;
  }

  Server& server_;
  const Space& space_;
};

void Server::look_at_versions() {
  auto now = steady_clock::now();
  if (now < next_look_at_versions_ || detaching_) return;
  next_look_at_versions_ = now + longest_wait;
  std::set<std::shared_ptr<Space>> spaces;
  for (auto& [pid, p] : processes_)
    if (p.space && p.space->has_version(1)) spaces.insert(p.space);
  for (const auto& space : spaces) look_at_versions_of(space);
  for (uint32_t slot : std::vector(wanted_)) send(slot);
  std::erase_if(wanted_, [&](uint32_t slot) { return !slots_[slot].is_running() || !slots_[slot].wanted; });
  if (wanted_.empty()) return;
  next_look_at_versions_ = std::min(next_look_at_versions_, steady_clock::now() + version_pause_);
  version_pause_ = std::min<steady_clock::duration>(2 * version_pause_, longest_pause);
}

void Server::look_at_versions_of(const std::shared_ptr<Space>& space) {
  if (auto now = steady_clock::now(); now >= space->next_look) {
    ThreadMoves moves(*this, *space);
    auto wait = space->tool().look(moves);
    space->next_look = wait < std::chrono::hours(1) ? now + wait : steady_clock::time_point::max();
  }
  next_look_at_versions_ = std::min(next_look_at_versions_, space->next_look);
}

void Server::want(uint32_t slot, Version version) {
  bool is_there = version_of(*process_of(slot)->space, slot) == version;
  slots_[slot].wanted = is_there ? std::nullopt : std::optional(version);
  __atomic_store_n(&block(slot)->is_wanted, !is_there, __ATOMIC_SEQ_CST);
  if (!is_there && std::ranges::find(wanted_, slot) == wanted_.end()) wanted_.push_back(slot);
  version_pause_ = first_pause;
}

// With the answer that it waits for.
void Server::arrive_in(uint32_t slot, Version version) {
  rt::ThreadBlock* tb = block(slot);
  __atomic_store_n(&tb->code_version, version, __ATOMIC_RELAXED);
  if (slots_[slot].wanted != version) return;
  slots_[slot].wanted.reset();
  __atomic_store_n(&tb->is_wanted, 0, __ATOMIC_RELAXED);
}

bool Server::is_sure_to_ask(uint32_t slot) const {
  const Slot& s = slots_[slot];
  bool asks = __atomic_load_n(&block(slot)->request.state, __ATOMIC_RELAXED) == rt::RequestState::Posted;
  return asks || waits_for_child(slot) || waits_in(s.pid, s.tid).behind == header_.allowed_done;
}

void Server::send(uint32_t slot) {
  const Slot& s = slots_[slot];
  Process* p = s.is_running() && s.wanted ? process_of(slot) : nullptr;
  if (!p || p->is_ended_by_us || seized_.contains(s.tid) || process::is_late(s.tid) || is_sure_to_ask(slot)) return;
  pid_t tid = s.tid;
  if (ptrace(PTRACE_SEIZE, tid, 0, 0)) return;
  ptrace(PTRACE_INTERRUPT, tid, 0, 0);
  auto status = process::wait_stop(tid, patience);
  if (!status || !*status) return process::let_go(tid);
  int event = **status >> 16, signal = event ? 0 : WSTOPSIG(**status);
  if (event == PTRACE_EVENT_STOP) process::make_again(tid, 0);
  bool ignored_traps = ignores_traps(tid);  // (a single step changes that, and what a filter may forbid changes it back)
  if (event == PTRACE_EVENT_STOP && !steps_itself(tid) && !(ignored_traps && p->quiet)) {
    auto l = leave_cache(*p, tid, signal, Leave::ForOtherVersion);
    if (ignored_traps && !ignores_traps(tid)) {
      if (signal) signal = deliver(tid, signal);
      auto remote = process::RemoteSyscalls::begin(process::Tracee(tid), process::find_syscall(tid));
      if (remote) (void)set_action(*remote, slot, SIGTRAP, {reinterpret_cast<uint64_t>(SIG_IGN), 0, 0, 0});
    }
    if (l && redirect(slot, *l)) (void)process::Tracee(tid).set_registers(l->regs);
  }
  ptrace(PTRACE_DETACH, tid, 0, signal);
}

// It has come to a place where it can change versions. False: it must go on as it is.
bool Server::redirect(uint32_t slot, Leaving& l) {
  if (l.slot != slot || l.is_native) return false;
  rt::ThreadBlock* tb = block(slot);
  bool is_in_call = process::is_in_restart(l.regs);
  AppPc at{l.regs.rip};
  l.regs.gs_base = Slots::address(slot);
  if (!is_in_call && !l.makes_call) {
    tb->sent_from = at.value;
    l.regs.rip = tb->guarded ? header_.guarded_sent : header_.sent;
    l.regs.orig_rax = ~0ull;
    return true;
  }
  if (tb->dispatch.is_on) return false;
  AppPc call = is_in_call ? at + -2 : at;
  tb->allowed_pc = call.value, tb->sent_from = (call + 2).value;
  tb->allowed_return = tb->guarded ? header_.guarded_sent_back : header_.sent_back;
  l.regs.rip = is_in_call ? header_.allowed_done : header_.allowed;
  return true;
}

}  // namespace weir::engine
