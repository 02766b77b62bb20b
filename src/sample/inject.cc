// Into a process, and out of it again. It stands still meanwhile; one of its threads makes the system calls.

#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "sample/sampler.h"

namespace weir::sample {

namespace {

constexpr auto patience = std::chrono::seconds(1);
constexpr auto little_patience = std::chrono::milliseconds(50);
constexpr auto much_patience = std::chrono::seconds(30);
constexpr uint64_t ignore = 1;  // SIG_IGN

}  // namespace

namespace {
// A process stands still for us, as long as this lives.
class Hold {
 public:
  Hold(pid_t& held, pid_t pid) : held_(held) { held_ = pid; }
  ~Hold() { held_ = 0; }
  Hold(const Hold&) = delete;

 private:
  pid_t& held_;
};
}  // namespace

uint64_t signal_bit(int signal) { return uint64_t{1} << (signal - 1); }
uint64_t signals_in(pid_t tid, const char* name) { return strtoull(process::status_word(tid, name).c_str(), nullptr, 16); }

bool has_ours(pid_t pid) {
  uint64_t word = 0;
  return process::read(pid, rt::sampler_base, std::as_writable_bytes(std::span(&word, 1))) == sizeof word;
}

// For some time. Others may wait for an answer.
std::function<bool()> Sampler::while_serving() {
  auto end = std::chrono::steady_clock::now() + patience;
  return [this, end] {
    for (auto& [pid, p] : processes_) answer(p);
    return std::chrono::steady_clock::now() < end;
  };
}

namespace {
// A file of ours becomes a descriptor of the process. It opens it itself, through /proc; or is given it: another user may not look there,
// and in another container it is not there.
Result<int> hand_over(process::RemoteSyscalls& remote, const Shared::File& f) {
  int flags = (f.protection & PROT_WRITE ? O_RDWR : O_RDONLY) | O_CLOEXEC;
  if (auto opened = remote.open(fmt::format("/proc/{}/fd/{}", getpid(), f.fd), flags)) return opened;
  Fd ours(open(fmt::format("/proc/self/fd/{}", f.fd).c_str(), flags));  // (to read only what it may only read)
  if (!ours) return fail_errno("weir's memory cannot be opened");
  return remote.receive(ours.get());
}
}  // namespace

// All of them, or none.
Result<> Sampler::map_files(process::RemoteSyscalls& remote, const Process& p) {
  std::vector<Shared::File> files = shared_->files();
  auto map = [&](const Shared::File& f) -> Result<> {
    auto file = hand_over(remote, f);
    if (!file) return fail("{}: it cannot be given weir's memory", file.error().what);
    auto fd = static_cast<uint64_t>(*file);
    auto protection = static_cast<uint64_t>(f.protection);
    // One that runs may have said that all it maps is locked (mlockall), which would make all of it. What cannot be read is not made.
    auto mapped = remote.call("mmap", SYS_mmap, f.address, f.size, p.has_begun ? PROT_NONE : protection,
                              MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_NORESERVE, fd, 0);
    TRY_VOID(remote.call("close", SYS_close, fd));
    if (mapped && p.has_begun) {
      TRY_VOID(remote.call("munlock", SYS_munlock, f.address, f.size));
      TRY_VOID(remote.call("mprotect", SYS_mprotect, f.address, f.size, protection));
    }
    if (!mapped)
      return fail(
          "{}: there is no room for weir at {:#x} (ulimit -v must allow {} GiB; and ulimit -l, if it locks its memory)",
          mapped.error().what, f.address, (rt::sample_slots_size + rt::sample_tables_size) >> 30);
    return {};
  };
  for (size_t i = 0; i < files.size(); i++) {
    auto mapped = map(files[i]);
    if (mapped) continue;
    while (i-- > 0) (void)remote.call("munmap", SYS_munmap, files[i].address, files[i].size);
    return mapped;
  }
  // (From the first to the last. It says that there is nothing between them, and does it all the same.)
  (void)remote.call("madvise", SYS_madvise, rt::sampler_base, files.back().address + files.back().size - rt::sampler_base,
                    MADV_DONTDUMP);
  return {};
}

void Sampler::unmap_files(process::RemoteSyscalls& remote) {
  for (const Shared::File& f : shared_->files()) (void)remote.call("munmap", SYS_munmap, f.address, f.size);
}

// By way of the control block, which both sides see.
Result<rt::KernelSigaction> Sampler::exchange_action(process::RemoteSyscalls& remote, const rt::KernelSigaction& action) {
  uint8_t* text = shared_->control().text;
  rt::KernelSigaction old;
  memcpy(text, &action, sizeof action);
  TRY_VOID(remote.call("rt_sigaction", SYS_rt_sigaction, static_cast<uint64_t>(signal_), Shared::address_of_text(),
                       Shared::address_of_text(), sizeof(uint64_t)));
  memcpy(&old, text, sizeof old);
  return old;
}

namespace {
void delete_timers(process::RemoteSyscalls& remote, const std::vector<int>& ids) {
  for (int id : ids) (void)remote.call("timer_delete", SYS_timer_delete, static_cast<uint64_t>(id));
}
}  // namespace

// A timer a thread, where perf's events are not to be had: of its CPU time, which counts at the kernel's tick, or of the time that passes.
Result<> Sampler::begin_timers(Process& p, process::RemoteSyscalls& remote, const std::vector<pid_t>& tids) {
  struct Text {
    uint64_t value;  // struct sigevent
    int32_t signal, notify, tid;
    int32_t rest[11];
    int32_t id, unused;
    itimerspec time;
  };
  auto* text = reinterpret_cast<Text*>(shared_->control().text);
  uint64_t at = Shared::address_of_text();
  static_assert(sizeof(Text) <= sizeof shared_->control().text);
  delete_timers(remote, std::exchange(p.idle_timers, {}));
  for (pid_t tid : tids) {
    if (p.timers.contains(tid)) continue;
    pid_t own = process::own_id(tid);
    constexpr int thread_clock = 6, shift = 3;  // CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED
    int clock = options_.event == "wall" ? CLOCK_MONOTONIC : (~own << shift) | thread_clock;
    *text = {};
    text->value = rt::sample_word(rt::SampleKind::Time, p.index);
    text->signal = signal_, text->notify = SIGEV_THREAD_ID, text->tid = own;
    auto nanoseconds = static_cast<long>(1e9 / options_.rate);
    text->time.it_interval = text->time.it_value = {nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
    auto made = remote.call("timer_create", SYS_timer_create, static_cast<uint64_t>(clock), at, at + offsetof(Text, id));
    p.timers[tid] = made ? text->id : -1;
    if (made)
      TRY_VOID(remote.call("timer_settime", SYS_timer_settime, static_cast<uint64_t>(text->id), 0,
                           at + offsetof(Text, time), 0));
  }
  return {};
}

namespace {
// Is this thread, which stands still, in a call that the kernel will begin again? A signal that comes before it does ends it with EINTR.
bool is_waiting(pid_t tid) {
  auto regs = process::Tracee(tid).registers();
  return regs && process::is_in_restart(*regs);
}

std::vector<pid_t> waiting_of(std::vector<pid_t> tids) {
  std::erase_if(tids, [](pid_t tid) { return !is_waiting(tid); });
  return tids;
}

// For how long the scheduler has let the thread run, in nanoseconds, and how often.
struct Ran {
  uint64_t time, times;
};
// None: it has ended, or the kernel does not count.
std::optional<Ran> ran(pid_t tid) {
  std::ifstream file(fmt::format("/proc/{}/schedstat", tid));
  uint64_t waited;
  if (Ran r{}; file >> r.time >> waited >> r.times) return r;
  return {};
}
}  // namespace

// The threads are about to be let go of. Events begin when these have run, and wait again.
void Sampler::await(Process& p, const std::vector<pid_t>& tids) {
  p.awaited.clear();
  for (pid_t tid : tids)
    if (auto r = ran(tid)) p.awaited[tid] = r->times;
  if (!tids.empty()) p.events_begin = std::chrono::steady_clock::now() + little_patience;
}

void Sampler::begin_awaited_events(Process& p) {
  constexpr auto a_moment = std::chrono::milliseconds(2);
  if (!p.events_begin) return;
  auto now = std::chrono::steady_clock::now();
  if (!p.awaited.empty()) {
    std::erase_if(p.awaited, [](const auto& a) {
      auto r = ran(a.first);
      return !r || r->times > a.second;
    });
    if (p.awaited.empty()) p.events_begin = now + a_moment;
  } else if (now >= *p.events_begin) {
    enable_events(p);
  }
}

rt::KernelSigaction Sampler::our_action() const {
  constexpr uint64_t siginfo = 4, restorer = 0x0400'0000, on_stack = 0x0800'0000, restart = 0x1000'0000;
  return {shared_->header().handler, siginfo | restorer | on_stack | restart, shared_->header().restorer, ~uint64_t{0}};
}

Result<> Sampler::put_in(Process& p, pid_t agent, const std::vector<pid_t>& tids) {
  rt::SampledProcess& told = shared_->control().processes[p.index];
  std::vector<pid_t> waiting = waiting_of(tids);
  auto registers = process::Tracee(agent).registers();
  constexpr size_t some = 16;
  for (size_t i = 0; i < tids.size() && i < some; i++)
    shared_->warm(rt::sample_key(p.index, static_cast<uint32_t>(process::own_id(tids[i]))));
  if (p.has_begun) take_dispatches(p, tids);
  TRY(auto remote, process::RemoteSyscalls::begin(process::Tracee(agent), process::find_syscall(agent)));
  TRY_VOID(map_files(remote, p));
  // (A signal of an earlier program's events may be waiting: what is ignored is forgotten.)
  auto own = exchange_action(remote, {ignore, 0, 0, 0});
  if (!own) return unmap_files(remote), std::unexpected(own.error());
  told.action = *own;
  TRY_VOID(exchange_action(remote, our_action()));
  p.has_ours = true;
  p.code.look(p.pid, p.index, *shared_, *images_);
  if (by_perf_ && !p.has_begun && registers) guard_entry(p, *registers);
  wait_for_code(p);
  bool is_early = by_perf_ && !p.entry && !p.code.has_library();  // see begin_late_events()
  auto begun = !by_perf_ ? begin_timers(p, remote, tids) : is_early ? Result<>() : begin_events(p, tids, waiting.empty());
  if (begun && is_early)
    if (auto exchanged = exchange_action(remote, *own); !exchanged) begun = std::unexpected(exchanged.error());
  if (!begun) {
    end_events(p);
    take_out(p, remote);
    return begun;
  }
  TRY_VOID(remote.end());
  p.entered = std::chrono::steady_clock::now();
  if (by_perf_ && !is_early) await(p, waiting);
  return {};
}

// A signal that comes from inside execve would end the new program: so the kernel is not looked at, unless each execve is seen before.
Result<> Sampler::begin_events(Process& p, const std::vector<pid_t>& tids, bool at_once) {
  guard(p, tids);
  Event event = event_;
  event.excludes_kernel |= !is_whole_guard(p);
  p.is_blind = event.excludes_kernel && !event_.excludes_kernel;
  std::vector<Fd> opened;
  for (pid_t tid : tids) {
    TRY(Fd time, open_event(tid, event, rt::sample_word(rt::SampleKind::Time, p.index)));
    opened.push_back(std::move(time));
    if (!switches_ || p.is_blind) continue;
    TRY(Fd waits, open_event(tid, *switches_, rt::sample_word(rt::SampleKind::Switch, p.index)));
    opened.push_back(std::move(waits));
  }
  if (options_.event == "cpu") begin_clock(p, tids, event.excludes_kernel);
  std::ranges::for_each(p.events, close_event);
  p.events = std::move(opened);
  if (at_once) enable_events(p);
  return {};
}

// One signal may stand for many periods that passed in the kernel: the handler asks the thread's clock, and knows here until when its time is in
// samples, or is not meant to be. (Of threads that begin later that is 0.)
void Sampler::begin_clock(Process& p, const std::vector<pid_t>& tids, bool excludes_kernel) {
  rt::SampledProcess& told = shared_->control().processes[p.index];
  bool goes_on = told.has_clock && !p.events.empty();
  bool is_known = !excludes_kernel;
  for (size_t i = 0; i < tids.size() && is_known && !goes_on; i++) {
    auto r = ran(tids[i]);
    uint32_t place = shared_->slot_of(rt::sample_key(p.index, static_cast<uint32_t>(process::own_id(tids[i]))));
    if (r && place) shared_->slot(place).last = r->time;
    is_known = r || !process::own_id(tids[i]);
  }
  told.has_clock = is_known;
  p.periods_before = told.periods;
}

// Is time of its threads in no sample, or in two? (Threads that come and go often have more signals than periods.) The clock is asked of programs
// only that cannot forbid that unseen: their code is known, and calls in it are guarded.
void Sampler::look_at_clock(Process& p) {
  rt::SampledProcess& told = shared_->control().processes[p.index];
  if (!told.has_clock || told.is_off || !p.code.is_complete()) return;
  constexpr uint64_t some = 2, part = 32;
  uint64_t time = 0;
  for (const Fd& event : p.events) time += count_of(event);
  uint64_t periods = time / event_.period, sampled = told.periods - p.periods_before;
  told.is_off = periods > sampled + some || sampled > periods + periods / part + some;
}

void Sampler::begin_events_again(Process& p) {
  if (auto done = begin_events(p, threads_of(p.pid), true); !done && process::own_id(p.pid))
    p.program.notes.push_back(fmt::format("not all of it was sampled: {}", done.error().what));
}

void Sampler::enable_events(Process& p) {
  for (const Fd& fd : p.events) enable(fd);
  p.events_begin.reset();
  p.awaited.clear();
}

void Sampler::end_events(Process& p) {
  std::ranges::for_each(p.events, close_event);
  p.events.clear();
  end_guards(p);
  close_event(p.entry);
}

// Those that were switched on unseen. As the handler does it: see rt/dispatched.h.
void Sampler::take_dispatches(Process& p, const std::vector<pid_t>& tids) {
  rt::SampledProcess& told = shared_->control().processes[p.index];
  for (pid_t tid : tids) {
    auto config = process::dispatch_of(tid);
    auto registers = process::Tracee(tid).registers();
    if (!config || !registers || config->begin == rt::sampler_base) continue;
    if (!config->size && !config->begin) {
      config->begin = rt::sampler_base, config->size = shared_->header().image_size;
      process::set_dispatch(tid, *config);
      continue;
    }
    auto own = static_cast<uint32_t>(process::own_id(tid));
    for (uint32_t at : rt::tid_places) {
      uint32_t word = 0;
      process::read(p.pid, registers->fs_base + at, std::as_writable_bytes(std::span(&word, 1)));
      if (word == own) told.tid_at = at;
    }
    rt::SampledDispatch& d = rt::dispatch_place(told, registers->fs_base);
    d.tid = own, d.selector = config->selector, d.fs = registers->fs_base;
    told.dispatch_count++;
  }
}

void Sampler::give_back_dispatches(const std::vector<pid_t>& tids) {
  for (pid_t tid : tids) {
    auto config = process::dispatch_of(tid);
    if (!config) continue;
    bool is_our_range = config->begin == rt::sampler_base;
    bool is_our_selector = config->selector - rt::sample_slots_base < rt::sample_slots_size;
    if (is_our_range) config->begin = config->size = 0;
    if (is_our_selector) config->selector = 0;
    if (is_our_range || is_our_selector) process::set_dispatch(tid, *config);
  }
}

namespace {
// Events are descriptors, some for each thread.
Result<> check_descriptors(pid_t pid, size_t threads, bool watch) {
  constexpr size_t of_a_thread = 6, others = 32;
  size_t needed = others + threads * (of_a_thread + (watch ? std::thread::hardware_concurrency() : 0));
  std::error_code none;
  for ([[maybe_unused]] const auto& open : std::filesystem::directory_iterator("/proc/self/fd", none)) needed++;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (needed <= limit.rlim_cur) return {};
  return fail(
      "process {}: has {} threads, which takes {} descriptors, and weir may have {}; ulimit -n {}, or --source=timer", pid,
      threads, needed, limit.rlim_cur, needed);
}
}  // namespace

Result<> Sampler::enter(Process& p, bool watch) {
  if (p.has_begun) {  // so much is found out while it still runs
    p.code.look(p.pid, p.index, *shared_, *images_);
    images_->wait_until_ready();
  }
  Hold hold(held_, p.pid);
  process::Threads threads(p.pid, signal_bit(signal_));
  TRY_VOID(threads.stop(while_serving()));
  if (by_perf_) TRY_VOID(check_descriptors(p.pid, threads.tids().size(), watch));
  for (pid_t tid : threads.tids()) unblock_stopped(p, tid);
  if (watch && by_perf_ && options_.follow) {
    has_watch_ = true;
    for (pid_t tid : threads.tids()) has_watch_ = has_watch_ && watch_.add(tid);
    is_told_ = has_watch_;
  }
  auto done = put_in(p, threads.agent(), threads.tids());
  if (!done) block_again(p);
  return done;
}

// A child has all that its parent has, but for events; so has a program that has begun before its guards were known. It is stopped for them: that
// tells whether it has executed another program, and that it is not about to. One that blocks signals may be: to take away the signal's action,
// perhaps, which it would not live through. What it has done to that before is made good.
Result<> Sampler::begin_stopped(Process& p) {
  if (!p.code.has_library()) return {};
  Hold hold(held_, p.pid);
  process::Threads threads(p.pid, signal_bit(signal_));
  TRY_VOID(threads.stop(while_serving()));
  if (threads.executed() || !has_ours(p.pid)) return fail("it has executed another program");
  for (pid_t tid : threads.tids())
    if (signals_in(tid, "SigBlk") & signal_bit(signal_)) return fail("it blocks the signal");
  pid_t agent = threads.agent();
  std::vector<pid_t> waiting = waiting_of(threads.tids());
  TRY(auto remote, process::RemoteSyscalls::begin(process::Tracee(agent), process::find_syscall(agent)));
  TRY(auto own, exchange_action(remote, our_action()));
  if (own.handler != our_action().handler) shared_->control().processes[p.index].action = own;
  TRY_VOID(remote.end());
  take_dispatches(p, threads.tids());
  TRY_VOID(begin_events(p, threads.tids(), waiting.empty()));
  await(p, waiting);
  return {};
}

void Sampler::time_new_threads(Process& p) {
  std::vector<pid_t> tids = threads_of(p.pid);
  std::erase_if(p.timers, [&](const auto& t) {
    bool has_ended = std::ranges::find(tids, t.first) == tids.end();
    if (has_ended && t.second >= 0) p.idle_timers.push_back(t.second);
    return has_ended;
  });
  if (p.timers.size() == tids.size()) return;
  Hold hold(held_, p.pid);
  process::Threads threads(p.pid, signal_bit(signal_));
  if (!threads.stop(while_serving())) return;
  pid_t agent = threads.agent();
  auto remote = process::RemoteSyscalls::begin(process::Tracee(agent), process::find_syscall(agent));
  if (remote) (void)begin_timers(p, *remote, threads.tids());
}

void Sampler::unblock_stopped(Process& p, pid_t tid) {
  uint64_t mask = 0;
  if (ptrace(PTRACE_GETSIGMASK, tid, sizeof mask, &mask) || !(mask & signal_bit(signal_))) return;
  mask &= ~signal_bit(signal_);
  if (!ptrace(PTRACE_SETSIGMASK, tid, sizeof mask, &mask)) p.unblocked[tid] = mask;
}

// Where the program has set another mask meanwhile, that is the one it wants.
void Sampler::block_again(Process& p) {
  for (auto [tid, ours] : std::exchange(p.unblocked, {})) {
    uint64_t mask = 0;
    if (ptrace(PTRACE_GETSIGMASK, tid, sizeof mask, &mask) || mask != ours) continue;
    mask |= signal_bit(signal_);
    ptrace(PTRACE_SETSIGMASK, tid, sizeof mask, &mask);
  }
}

bool Sampler::is_in_handler(pid_t tid) const {
  auto regs = process::Tracee(tid).registers();
  return regs && regs->rip - rt::sampler_base < shared_->header().image_size;
}

// A thread that blocks our signal would never be sampled. In our handler it does, and must: the next signal's frame would be written over
// that of this one, on an alternate stack.
void Sampler::unblock(Process& p, pid_t tid) {
  Hold hold(held_, p.pid);
  if (ptrace(PTRACE_SEIZE, tid, 0, 0)) return;
  ptrace(PTRACE_INTERRUPT, tid, 0, 0);
  auto status = process::wait_stop(tid, little_patience);
  if (!status || !*status) return process::let_go(tid);
  if (!is_waiting(tid) && !is_in_handler(tid)) unblock_stopped(p, tid);  // (a call that waits would end with EINTR)
  process::make_again(tid, signal_bit(signal_));
  ptrace(PTRACE_DETACH, tid, 0, **status >> 16 ? 0 : WSTOPSIG(**status));
}

// The signal's action, the timers and the mappings are as they were.
void Sampler::take_out(Process& p, process::RemoteSyscalls& remote) {
  for (auto [tid, id] : std::exchange(p.timers, {}))
    if (id >= 0) p.idle_timers.push_back(id);
  delete_timers(remote, std::exchange(p.idle_timers, {}));
  // What is ignored is forgotten: a signal of ours that still waits somewhere must not meet the program's own action.
  rt::KernelSigaction own = shared_->control().processes[p.index].action;
  if (!exchange_action(remote, {ignore, 0, 0, 0}) || !exchange_action(remote, own)) return;
  unmap_files(remote);
  p.has_ours = false;
}

namespace {
// Does it wait for its child to execute another program, or to end?
bool is_vforking(pid_t tid) {
  if (process::stat_of(tid).words[process::StatState] != "D") return false;
  std::ifstream file(fmt::format("/proc/{}/syscall", tid));
  int call = -1;
  file >> call;
  return call == SYS_vfork || call == SYS_clone || call == SYS_clone3;
}
}  // namespace

// Every thread goes on as if we had not been there.
void Sampler::leave(Process& p) {
  end_events(p);
  if (!p.has_ours) return;
  if (is_left_alone(p.pid))
    return say("process {}: another one traces it; weir's handler stays there, and does nothing", p.pid);
  Hold hold(held_, p.pid);
  auto end = std::chrono::steady_clock::now() + much_patience;
  process::Threads threads(p.pid, signal_bit(signal_));
  for (bool is_ready = false; !is_ready;) {
    if (std::chrono::steady_clock::now() > end)
      return say("process {}: a thread of it does not stop; weir's handler stays there, and does nothing", p.pid);
    if (has_ended(p) || process::own_id(p.pid) == 0) return;
    if (std::ranges::any_of(threads_of(p.pid), is_vforking)) {  // it cannot be stopped, and the others must not wait for it
      for (auto& [pid, q] : processes_) answer(q);
      threads.look();
      usleep(1000);
      continue;
    }
    if (!threads.stop(while_serving())) continue;
    if (threads.executed()) return;
    is_ready = true;
    for (pid_t tid : threads.tids())
      if (is_in_handler(tid)) threads.go_on(tid), is_ready = false;
    if (!is_ready) usleep(200);
  }
  threads.end_with_us();
  pid_t agent = threads.agent();
  auto remote = process::RemoteSyscalls::begin(process::Tracee(agent), process::find_syscall(agent));
  if (!remote) return;
  take_out(p, *remote);
  (void)remote->end();
  give_back_dispatches(threads.tids());
  block_again(p);
}

}  // namespace weir::sample
