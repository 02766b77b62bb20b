// Detaching, the reverse of attaching: every thread goes on natively where it is in the program, and nothing of ours is left.
//
// All threads are stopped. One in the cache is at an exact place, or is single-stepped to the next (marks tell, as for signals). One in the
// runtime, or on its way to a boundary with a signal, goes on until it is out of there, and is served meanwhile; it is stopped
// again then. When all are at exact places they get the program's registers, one of them makes the system calls that put the
// program's signal actions back and unmap our memory, and all are let go.

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>

#include "engine/server.h"
#include "instrument/clock.h"
#include "process/threads.h"

namespace weir::engine {

namespace {

constexpr auto patience = std::chrono::milliseconds(100);
constexpr auto much_patience = std::chrono::seconds(30);
constexpr int max_steps = 10'000;
constexpr int max_steps_to_entry = 1'000;
constexpr uint16_t syscall_code = 0x050f;

constexpr uint64_t trap_flag = 0x100;

// The flag that makes a thread step must not stay behind: neither in flags that it has just pushed nor, behind a popf, where the kernel takes it for
// the program's own, in its registers.
void clear_trap_flag(const process::Tracee& tracee, bool is_pushed) {
  auto regs = tracee.registers();
  if (!regs) return;
  uint64_t flags = 0;
  if (is_pushed && process::read(tracee.pid(), regs->rsp, std::as_writable_bytes(std::span(&flags, 1))) == sizeof flags) {
    flags &= ~trap_flag;
    (void)tracee.write(regs->rsp, std::as_bytes(std::span(&flags, 1)));
  }
  if (!(regs->eflags & trap_flag)) return;
  regs->eflags &= ~trap_flag;
  (void)tracee.set_registers(*regs);
}

// Is the thread stopped by what we have it do? (One that somebody has sent, or int3, is the program's.)
bool is_our_trap(pid_t tid, int status) {
  siginfo_t info;
  if (status >> 16) return true;
  return WSTOPSIG(status) == SIGTRAP && !ptrace(PTRACE_GETSIGINFO, tid, 0, &info) && info.si_code > 0 &&
         info.si_code < SI_KERNEL;
}

// One instruction. Returns the signal that it is stopped by instead, if there is one.
int step(const user_regs_struct& regs, pid_t tid, bool pushes_flags = false) {
  if (ptrace(PTRACE_SINGLESTEP, tid, 0, 0)) return 0;
  auto status = process::wait_stop(tid);
  if (!(regs.eflags & trap_flag)) clear_trap_flag(process::Tracee(tid), pushes_flags);
  return status && !is_our_trap(tid, *status) ? WSTOPSIG(*status) : 0;
}

// A system call, by its two stops. (A single step raises SIGTRAP: where the call has just blocked that, the kernel forgets its action.)
int step_over_call(pid_t tid) {
  for (int stops = 0; stops < 2;) {  // before it, and behind
    if (ptrace(PTRACE_SYSCALL, tid, 0, 0)) return 0;
    auto status = process::wait_stop(tid);
    if (!status) return 0;
    if (!is_our_trap(tid, *status)) return WSTOPSIG(*status);
    if (*status >> 16 == 0) stops++;
  }
  return 0;
}

// A set of signals, as /proc/PID/status has it.
uint64_t signals_in(pid_t tid, const char* name) { return strtoull(process::status_word(tid, name).c_str(), nullptr, 16); }

// While a thread is stepped signals wait, but for those of its own instructions.
class QuietStep {
 public:
  explicit QuietStep(pid_t tid) : tid_(tid) {
    constexpr uint64_t faults =
        1 << (SIGTRAP - 1) | 1 << (SIGSEGV - 1) | 1 << (SIGBUS - 1) | 1 << (SIGFPE - 1) | 1 << (SIGILL - 1);
    uint64_t mask = ~faults;
    ptrace(PTRACE_GETSIGMASK, tid, sizeof mask_, &mask_);
    ptrace(PTRACE_SETSIGMASK, tid, sizeof mask, &mask);
  }
  ~QuietStep() { ptrace(PTRACE_SETSIGMASK, tid_, sizeof mask_, &mask_); }

 private:
  pid_t tid_;
  uint64_t mask_ = 0;
};

// The kernel forgets the action of a SIGTRAP that it must deliver where that is blocked: it is not, for a step.
class TrapMask {
 public:
  explicit TrapMask(pid_t tid) : tid_(tid) {
    ptrace(PTRACE_GETSIGMASK, tid, sizeof mask_, &mask_);
    is_changed_ = mask_ & trap;
    uint64_t mask = mask_ & ~trap;
    if (is_changed_) ptrace(PTRACE_SETSIGMASK, tid, sizeof mask, &mask);
  }
  ~TrapMask() {
    if (is_changed_) ptrace(PTRACE_SETSIGMASK, tid_, sizeof mask_, &mask_);
  }

 private:
  static constexpr uint64_t trap = 1 << (SIGTRAP - 1);
  pid_t tid_;
  uint64_t mask_ = 0;
  bool is_changed_ = false;
};

void mend(const Space::Place& at, const rt::ThreadBlock& tb, user_regs_struct& regs) {
  unsigned long long* const in_order[16] = {&regs.rax, &regs.rcx, &regs.rdx, &regs.rbx, &regs.rsp, &regs.rbp,
                                            &regs.rsi, &regs.rdi, &regs.r8,  &regs.r9,  &regs.r10, &regs.r11,
                                            &regs.r12, &regs.r13, &regs.r14, &regs.r15};
  if (at.restore & rt::RestoreRcx) regs.rcx = tb.rcx;
  if (at.restore & rt::RestoreSpill0) *in_order[at.spilled & 15] = tb.spill[0];
  if (at.restore & rt::RestoreSpill1) *in_order[at.spilled >> 4 & 15] = tb.spill[1];
  if (at.restore & rt::SetRcxToPc) regs.rcx = at.app.value;
}

}  // namespace

Result<> Server::give_back_actions(process::RemoteSyscalls& remote, uint32_t slot, pid_t tid, bool ignores_traps) {
  for (uint64_t sig = 1, caught = signals_in(tid, "SigCgt"); sig <= 64; sig++) {
    if (!(caught >> (sig - 1) & 1)) continue;
    TRY(rt::KernelSigaction action, action_of(remote, slot, sig));
    if (action.handler == header_.signal_entry) TRY_VOID(set_action(remote, slot, sig, block(slot)->own_actions[sig - 1]));
  }
  // (A single step may have changed that.)
  if (ignores_traps) TRY_VOID(set_action(remote, slot, SIGTRAP, {reinterpret_cast<uint64_t>(SIG_IGN), 0, 0, 0}));
  return {};
}

Result<> unmap_ours(process::RemoteSyscalls& remote, pid_t tid, const Space& space) {
  auto tool_regions = space.tool().services().regions;
  for (size_t i = 0; i < tool_regions.size(); i++) {
    AppRange r = whole(tool_regions[i], space.tool_regions()[i]);
    TRY_VOID(remote.call("munmap", SYS_munmap, r.begin.value, r.size()));
  }
  TRY(auto regions, process::regions(tid));
  for (const process::Region& r : regions)
    if (r.path.starts_with("/memfd:weir-"))
      TRY_VOID(remote.call("munmap", SYS_munmap, r.range.begin.value, r.range.size()));
  return {};
}

// One that asks all the time is hardly ever met outside of the runtime: it is stepped out of there, unless it waits for an answer, makes a call that
// may take a while, or steps itself.
bool Server::step_out_of_runtime(pid_t tid, int& signal) {
  constexpr unsigned long long short_calls[] = {
      SYS_futex,   SYS_restart_syscall, SYS_kill,  SYS_rt_sigprocmask, SYS_mmap,   SYS_munmap,          SYS_mprotect,
      SYS_madvise, SYS_openat,          SYS_close, SYS_gettid,         SYS_getpid, SYS_process_vm_readv};
  constexpr uint16_t pushf_code = 0x9c;
  process::Tracee tracee(tid);
  uint32_t slot = slots_.of_thread(tid);
  const rt::ThreadBlock* tb = block(slot);
  for (int steps = 0; slot && !signal && steps < max_steps; steps++) {
    auto regs = tracee.registers();
    if (!regs) return false;
    uint64_t offset = regs->rip - rt::runtime_base;
    if (offset >= header_.image_size) return true;
    if (tb->stepping || tb->signal_pending || (tb->regs.flags & trap_flag)) return false;
    moving_->waits = __atomic_load_n(&tb->request.state, __ATOMIC_RELAXED) == rt::RequestState::Posted;
    if (moving_->waits) return false;
    uint16_t code = 0;
    memcpy(&code, runtime_.mapping.data() + offset, sizeof code);
    bool is_in_restart = process::is_in_restart(*regs);
    if (is_in_restart || code == syscall_code) {
      unsigned long long call = is_in_restart ? regs->orig_rax : regs->rax;
      if (std::ranges::find(short_calls, call) == std::end(short_calls)) return false;
      signal = step_over_call(tid);
    } else {
      TrapMask mask(tid);
      signal = step(*regs, tid, (code & 0xff) == pushf_code);
    }
  }
  return false;
}

// Where a stopped thread is in the program. None: that cannot be said yet, it must go on, with `signal`. One that stays under Weir keeps the clock
// in its register, and goes to where nothing is counted twice: in the middle of a block, and before a call, probes have run that it would meet again
// where it goes on. (One that turns round in a loop without calls, which is entered nowhere else, counts the rest of its block twice; to change
// versions, any block will do.)
std::optional<Server::Leaving> Server::leave_cache(Process& p, pid_t tid, int& signal, Leave how) {
  bool stays = how != Leave::ForGood;
  process::Tracee tracee(tid);
  auto regs = tracee.registers();
  auto in_runtime = [&] { return regs->rip - rt::runtime_base < header_.image_size; };
  if (!regs) return {};
  bool steps_out = how == Leave::ForOtherSpace && moving_->steps_out;
  // It makes a system call behind which it is to change versions.
  bool is_behind_call = regs->rip == header_.allowed_done && process::is_in_restart(*regs);
  bool is_in_call = is_behind_call || regs->rip == header_.allowed;
  if (in_runtime() && (!is_in_call || how == Leave::ForOtherVersion)) {
    if (!steps_out || !step_out_of_runtime(tid, signal)) return {};
    regs = tracee.registers();
    if (!regs || in_runtime()) return {};
  }
  uint64_t slot = (regs->gs_base - rt::blocks_base) / rt::block_stride;
  if (slot >= slots_.size() || slots_[slot].tid != tid) return Leaving{tid, *regs};  // it never was in the cache
  rt::ThreadBlock* tb = block(static_cast<uint32_t>(slot));
  if (tb->stepping || tb->signal_pending) return {};
  Space::Place at = p.space->where({regs->rip});
  if (is_in_call && in_runtime()) {
    uint64_t call = tb->allowed_pc;
    if (is_behind_call) at = {rt::Place::Exact, {call + sizeof syscall_code}, rt::SetRcxToPc, 0, {}};
    else at = {rt::Place::Exact, {call}, 0, 0, {}};
  }
  std::optional<QuietStep> quiet;
  bool is_counted = stays && p.space->tool().has_probes(), makes_call = false;
  int steps = 0;
  auto is_middle = [&] {
    if (at.place == rt::Place::Middle || (stays && (at.restore & rt::RestoreClock))) return true;
    if (!is_counted || at.place == rt::Place::NotCache || process::is_in_restart(*regs)) return false;
    uint16_t code = 0;
    makes_call =
        process::read(tid, regs->rip, std::as_writable_bytes(std::span(&code, 1))) == sizeof code && code == syscall_code;
    if (how == Leave::ForOtherVersion) return !makes_call && !p.space->begins_block({regs->rip});
    return !makes_call && steps < max_steps_to_entry && !p.space->is_entry({regs->rip});
  };
  for (; is_middle(); steps++) {
    if (steps == max_steps) return {};
    if (!quiet) quiet.emplace(tid);
    signal = step(*regs, tid);
    regs = tracee.registers();
    if (signal || !regs) return {};
    if (in_runtime()) {  // (a guard of volatile code is there)
      quiet.reset();
      if (steps_out) return leave_cache(p, tid, signal, how);
      return {};
    }
    at = p.space->where({regs->rip});
  }
  bool is_native = at.place == rt::Place::NotCache;
  if (!is_native) mend(at, *tb, *regs);
  regs->rip = at.app.value;
  regs->gs_base = tb->app_gs;
  bool has_clock = p.space->tool().services().clock && instrument::clock_register_offset();
  return Leaving{tid,
                 *regs,
                 static_cast<uint32_t>(slot),
                 is_native,
                 has_clock && !(at.restore & rt::RestoreClock) ? tb : nullptr,
                 makes_call};
}

// Processes that share their memory. False: not now.
bool Server::detach(const std::vector<pid_t>& group) {
  using namespace std::chrono;
  auto end = steady_clock::now();
  auto serve_on = [&] {
    serve_posted();
    return steady_clock::now() < end;
  };
  struct Stopped {
    process::Threads threads;
    bool ignores_traps;
    std::vector<Leaving> leaving = {};
  };
  std::map<pid_t, Stopped> stopped;
  for (pid_t pid : group)
    stopped.emplace(pid, Stopped{process::Threads(pid), (signals_in(pid, "SigIgn") >> (SIGTRAP - 1) & 1) != 0});
  // One that was let go on must come to run before it is stopped again, or it would never get anywhere: ever more time.
  microseconds pause(20);
  auto last = end + much_patience;
  for (bool ready = false; !ready; pause = std::min<microseconds>(2 * pause, patience)) {
    ready = true;
    if (!movers_.empty()) return false;  // they move first
    for (auto& [pid, s] : stopped) {
      end = steady_clock::now() + patience;
      if (!s.threads.stop(serve_on)) return false;
      if (s.threads.executed()) {  // nothing of ours is left in it
        processes_.at(pid).run.ended_by = "exec";
        process_ended(pid);
        return true;
      }
      s.leaving.clear();
      for (pid_t tid : s.threads.tids()) {
        int signal = 0;
        if (auto l = leave_cache(processes_.at(pid), tid, signal, Leave::ForGood)) {
          s.leaving.push_back(*l);
          continue;
        }
        s.threads.go_on(tid, signal);
        ready = false;
      }
    }
    if (!ready && steady_clock::now() > last) {
      for (pid_t pid : group) {
        say("{}: a thread of it does not come out of weir's runtime; the process is ended", processes_.at(pid).run.program);
        kill(pid, SIGKILL);
      }
      failed_ = true;
      return false;
    }
    end = steady_clock::now() + pause;
    for (timespec t{0, 20'000}; !ready && serve_on(); nanosleep(&t, nullptr))
      for (auto& [pid, s] : stopped) s.threads.look();
  }
  for (auto& [pid, s] : stopped) {
    s.threads.end_with_us();
    for (Leaving& l : s.leaving) {
      if (l.clock) (void)process::exchange_zmm31(l.tid, instrument::clock_register_offset(), l.clock->clock.zmm31);
      (void)process::Tracee(l.tid).set_registers(l.regs);
    }
    pid_t agent = s.threads.agent();
    auto remote = process::RemoteSyscalls::begin(process::Tracee(agent), process::find_syscall(agent));
    bool is_last = pid == stopped.rbegin()->first;
    Result<> done;
    if (remote) done = give_back_actions(*remote, processes_.at(pid).first_slot, agent, s.ignores_traps);
    if (remote && done && is_last) done = unmap_ours(*remote, agent, *processes_.at(pid).space);
    if (!done) say("{}", done.error().what);  // it is on its way out
    if (remote) (void)remote->end();
  }
  stopped.clear();  // they go on
  for (pid_t pid : group) {
    processes_.at(pid).run.ended_by = "detach";
    process_ended(pid);
  }
  return true;
}

void Server::detach_all() {
  detaching_ = true;
  for (;;) {
    await_newborn();
    reap();  // (a thread that we hold for an exec may end: its process is there until we have waited for it)
    look_for_ended();
    while (make_move()) {}
    if (processes_.empty()) return;
    std::vector<pid_t> group;
    for (auto& [pid, p] : processes_)
      if (p.memory == processes_.begin()->second.memory) group.push_back(pid);
    detach(group);
  }
}

}  // namespace weir::engine
