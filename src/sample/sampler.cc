// The loop of a sampled run: it starts a program, or attaches, follows what it does, and ends.

#include "sample/sampler.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <x86intrin.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "elf/kept.h"
#include "process/program.h"
#include "process/spawn.h"

namespace weir::sample {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

// How often what nobody tells of is looked for: threads that need a timer more often, as they go without samples till then.
constexpr auto sweep_pause = 50ms, timers_sweep_pause = 5ms;
constexpr auto longest_pause = 1000ms;
constexpr size_t few_events = 8;  // that are looked at each time

// Do the two have the same memory? (vfork)
bool share_memory(pid_t a, pid_t b) { return syscall(SYS_kcmp, a, b, KCMP_VM, 0, 0) == 0; }

// Ticks of the time stamp counter in a second.
double ticks_per_second() {
  auto begin = steady_clock::now();
  uint64_t ticks = __rdtsc();
  while (steady_clock::now() < begin + 5ms) {}
  return double(__rdtsc() - ticks) / std::chrono::duration<double>(steady_clock::now() - begin).count();
}

double seconds_of(const timeval& t) { return double(t.tv_sec) + double(t.tv_usec) / 1e6; }

// What a sample took in the handler, in seconds, on average.
double cost_of(std::span<const Program> programs) {
  uint64_t timed = 0, ticks = 0;
  for (const Program& p : programs)
    for (const Thread& t : p.threads) timed += t.counts.timed, ticks += t.counts.ticks;
  return timed ? double(ticks) / double(timed) / ticks_per_second() : 0;
}

}  // namespace

bool has_ended(const Process& p) {
  pollfd gone{p.pidfd.get(), POLLIN, 0};
  return poll(&gone, 1, 0) == 1;
}

std::vector<pid_t> threads_of(pid_t pid) {
  std::vector<pid_t> tids;
  std::error_code none;
  for (const auto& task : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), none))
    tids.push_back(static_cast<pid_t>(atoi(task.path().filename().c_str())));
  if (tids.size() > 1 && process::living_thread(pid) != pid) std::erase(tids, pid);
  return tids;
}

// When all went well it is never taken down: to unmap it all takes milliseconds, and the thread that looks at images would be waited for.
Result<int> run(const Options& options) {
  static std::unique_ptr<Sampler> sampler;
  sampler = std::make_unique<Sampler>(options);
  auto status = sampler->run();
  if (status) elf::keep_no_more();
  else sampler.reset();
  return status;
}

Result<int> Sampler::run() {
  TRY_VOID(set_up());
  TRY_VOID(options_.pids.empty() ? spawn() : attach_all());
  loop();
  return finish();
}

// ---- Setting up -----------------------------------------------------------------------------------------------------------
Result<> Sampler::choose_source() {
  if (is_time()) event_ = task_clock(options_.rate);
  else if (auto found = find_event(options_.event)) event_ = *found;
  else return fail("{}: there is no such event; there are: cpu, wall, {}", options_.event, fmt::join(event_names(), ", "));
  if (!is_time() && options_.source == Source::Timer)
    return fail("{}: timers count time only; --source=perf", options_.event);
  if (!is_time() && options_.period) event_.period = options_.period;
  by_perf_ = options_.source != Source::Timer;
  Result<> allowed = by_perf_ ? try_event(event_) : Result<>();
  if (allowed && by_perf_ && options_.event == "wall") {
    switches_ = context_switches();
    allowed = try_event(*switches_);
    // What happens in the kernel, as switches do, is not told to those who may not look into it.
    if (allowed && switches_->excludes_kernel) allowed = fail("wall time needs a look into the kernel");
  }
  if (!allowed) {
    constexpr const char* remedy = "sysctl kernel.perf_event_paranoid=1, or run weir as root";
    if (!is_time())
      return fail("{}: this machine, or its kernel, does not offer that event ({}); cpu and wall are always there",
                  options_.event, allowed.error().what);
    if (options_.source == Source::Perf) return fail("{}; allow it: {}", allowed.error().what, remedy);
    if (options_.event == "wall" && options_.source == Source::Any)
      return fail("{}; allow it: {}. --source=timer does without, but ends calls that wait, as sleep(), too early",
                  allowed.error().what, remedy);
    by_perf_ = false;
    switches_.reset();
  }
  signal_ = by_perf_ ? SIGTRAP : SIGURG;
  return {};
}

Result<> Sampler::set_up() {
  signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes is told as an error
  getrlimit(RLIMIT_NOFILE, &descriptors_);
  rlimit more{descriptors_.rlim_max, descriptors_.rlim_max};
  setrlimit(RLIMIT_NOFILE, &more);
  constexpr rlim_t fewest = 64;
  if (more.rlim_max < fewest)
    return fail("weir may open {} files, which are too few, and the result would be lost: ulimit -n {}", more.rlim_max,
                fewest);
  TRY_VOID(choose_source());
  TRY(shared_, Shared::create());
  images_.emplace(*shared_);
  rt::SampleControl& control = shared_->control();
  control.signal = static_cast<uint32_t>(signal_);
  control.weir = static_cast<uint32_t>(getpid());
  control.options = options_.walk;
  control.verify = options_.verify;
  control.is_timed = options_.measure;
  if (is_time()) control.nanoseconds = static_cast<uint64_t>(1e9 / options_.rate);
  if (switches_) control.period = period_ = static_cast<uint64_t>(ticks_per_second() / options_.rate);
  began_ = __rdtsc();
  sigset_t wanted;
  sigemptyset(&wanted);
  for (int sig : {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT}) sigaddset(&wanted, sig);
  sigprocmask(SIG_BLOCK, &wanted, &mask_);
  signals_ = Fd(signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) return fail_errno("signalfd");
  return {};
}

Result<> Sampler::spawn() {
  TRY(process::Tracee program, process::spawn(options_.command, [&] {
        sigprocmask(SIG_SETMASK, &mask_, nullptr);
        signal(SIGXFSZ, SIG_DFL);
        setrlimit(RLIMIT_NOFILE, &descriptors_);
      }));
  main_pid_ = program.pid();
  if (by_perf_ && options_.follow) has_watch_ = is_told_ = watch_.add(main_pid_).has_value();
  auto done = put_in(add(main_pid_, 0), main_pid_, {main_pid_});
  if (done) done = program.detach();
  if (done) return {};
  program.end();
  return fail("{}: {}", options_.command[0], done.error().what);
}

Result<> Sampler::attach_all() {
  for (int pid : options_.pids) {
    if (processes_.contains(pid)) continue;
    Process& p = add(pid, 0);
    p.has_begun = true;
    Result<> done = process::may_attach(pid);
    if (done) done = enter(p, true);
    if (done) find_written_names(p, process::began(pid));
    if (done) continue;
    processes_.erase(pid);
    for (auto& [other, q] : processes_) leave(q);
    return fail("{}", done.error().what);
  }
  if (options_.seconds > 0)
    deadline_ = steady_clock::now() +
                std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(options_.seconds));
  return {};
}

// ---- The loop -------------------------------------------------------------------------------------------------------------
bool Sampler::is_over() const {
  if (options_.pids.empty()) return main_ended_;
  return processes_.empty() || leave_wanted_ || (deadline_ && steady_clock::now() >= *deadline_);
}

void Sampler::loop() {
  while (!is_over()) {
    wait();
    take_signals();
    reap();
    look_at_watch();
    take_news();
    take_records();
    for (auto& [pid, p] : processes_) {
      answer(p);
      begin_awaited_events(p);
      if (p.events.size() <= few_events) look_at_clock(p);
    }
    bool is_called = std::exchange(shared_->control().attention, 0);
    for (auto& [pid, p] : processes_)
      if ((is_called || p.wants_look) && steady_clock::now() >= p.next_look) attend(p);
    for (auto [pid, born] : std::exchange(newborn_, {})) follow(pid, born.parent, born.since);
    if (steady_clock::now() >= next_sweep_) look_around();
    renew_guardian();
  }
}

// Until something happens. What the handler asks for is looked for every few milliseconds: it must not wait for us, nor make a call.
void Sampler::wait() {
  constexpr auto most = 5ms;
  auto until = steady_clock::now() + most;
  if (deadline_) until = std::min(until, *deadline_);
  for (auto& [pid, p] : processes_)
    if (p.waits_since || p.entry) until = std::min(until, steady_clock::now() + 1ms);
  std::vector<pollfd> fds{{signals_.get(), POLLIN, 0}, {images_->news(), POLLIN, 0}};
  // A linker maps a thousand times in some milliseconds: we need not be woken for each.
  constexpr int moment = 1;
  if (only_mapped_ && poll(fds.data(), fds.size(), moment)) return;
  if (has_watch_)
    for (int fd : watch_.descriptors()) fds.push_back({fd, POLLIN, 0});
  auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now()).count();
  poll(fds.data(), fds.size(), static_cast<int>(std::max<int64_t>(left, 0)));
}

// SIGINT and SIGQUIT are the terminal's: they reach a program that we started, too, and it decides. Others are passed on. Where we are
// attached, all say that it is enough.
void Sampler::take_signals() {
  signalfd_siginfo info;
  while (read(signals_.get(), &info, sizeof info) == sizeof info) {
    int sig = static_cast<int>(info.ssi_signo);
    if (!options_.pids.empty()) leave_wanted_ |= sig != SIGCONT && sig != SIGCHLD;
    else if (sig != SIGCHLD && sig != SIGINT && sig != SIGQUIT && !main_ended_ &&
             (sig != SIGCONT || process::is_stopped(main_pid_)))
      kill(main_pid_, sig);
  }
}

void Sampler::reap() {
  if (process::is_late(main_pid_)) process::let_go_of_late();
  if (process::is_late(main_pid_)) return;
  int status;
  rusage used;
  while (main_pid_ && !main_ended_ && wait4(main_pid_, &status, WNOHANG | WUNTRACED, &used) == main_pid_) {
    if (WIFSTOPPED(status)) {
      if (processes_.size() <= 1) process::stop_with(main_pid_);
      continue;
    }
    main_ended_ = true;
    look_at_watch();  // (what it forked last is followed before it is gone)
    cpu_seconds_ = seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
    status_ = process::own_end(status);
    if (auto p = processes_.find(main_pid_); p != processes_.end())
      ended(p->second, WIFSIGNALED(status) ? "signal" : "exit", process::shell_status(status));
  }
}

void Sampler::look_at_watch() {
  if (!has_watch_) return;
  auto records = watch_.read();
  only_mapped_ = !records.empty();
  for (const Watch::Record& r : records) {
    auto known = processes_.find(r.pid);
    if (r.kind == Watch::Record::Forked) follow(r.pid, r.parent, steady_clock::now());
    if (r.kind == Watch::Record::Executed) executed(r.pid);
    only_mapped_ &= r.kind == Watch::Record::Mapped;
    if (r.kind == Watch::Record::Mapped && known != processes_.end()) known->second.wants_look = true;
    is_told_ &= r.kind != Watch::Record::Lost;  // from now on we look ourselves
  }
}

// What nobody tells us of. It takes a twentieth of our time, at most.
void Sampler::look_around() {
  auto begin = steady_clock::now();
  process::let_go_of_late();
  come_back();
  std::vector<pid_t> pids;
  for (auto& [pid, p] : processes_) pids.push_back(pid);
  for (pid_t pid : pids) look_at(processes_.at(pid));
  auto pause = by_perf_ ? sweep_pause : timers_sweep_pause;
  next_sweep_ = steady_clock::now() + std::max<steady_clock::duration>(pause, 20 * (steady_clock::now() - begin));
}

// It may be another program afterwards, or gone.
void Sampler::look_at(Process& p) {
  if (p.pid != main_pid_ && has_ended(p)) return ended(p, "");
  if (is_left_alone(p.pid)) return;
  look_at_seccomp(p);
  look_at_clock(p);
  forget_entry(p);
  begin_late_events(p);
  name_threads(p);
  find_perf_map(p, p.program.started);  // (it may come after the code that it names)
  collect_ended_threads(p);
  look_at_threads(p);
  if (switches_) look_at_sleepers(p);
  if (!is_told_ && options_.follow) {
    find_children(p);
    p.code.look(p.pid, p.index, *shared_, *images_);
    if (!p.code.has_ours()) return executed(p.pid);
  }
  if (!by_perf_) time_new_threads(p);
}

// Under a filter of system calls the handler makes none any more. (It may have seen one come; that it was refused makes no difference.)
void Sampler::look_at_seccomp(Process& p) {
  uint8_t& may_call = shared_->control().processes[p.index].may_call;
  if (p.is_confined || (may_call && process::status_word(p.pid, "Seccomp") == "0")) return;
  p.is_confined = true, may_call = 0;
  if (by_perf_ && p.has_ours && !p.is_executing && !p.events.empty()) begin_events_again(p);
}

// ---- Processes ------------------------------------------------------------------------------------------------------------
Process& Sampler::add(pid_t pid, pid_t parent) {
  Process& p = processes_[pid];
  p.pid = pid;
  p.own_pid = process::own_id(pid);
  p.parent = parent;
  p.pidfd = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  p.program.pid = static_cast<uint32_t>(pid);
  p.program.parent_pid = static_cast<uint32_t>(parent);
  p.program.command = process::command_of(pid);
  p.program.started = process::microseconds_now();
  rt::SampleControl& control = shared_->control();
  // One that is free; slots of an earlier one may be kept for the guardian.
  std::set<uint64_t> used;
  for (auto& [other, q] : processes_)
    if (other != pid) used.insert(q.index + 1);
  for (uint64_t key : control.keys) used.insert(key >> 32);
  uint32_t index = 0;
  while (used.contains(index + 1) && index + 1 < rt::max_sample_processes) index++;
  p.index = index;
  guardian_is_old_ = true;
  control.processes[index] = {};
  control.processes[index].pid = static_cast<uint32_t>(p.own_pid);
  control.processes[index].sees_weir = p.own_pid == pid;
  p.is_confined = process::status_word(pid, "Seccomp") != "0";
  control.processes[index].may_call = !p.is_confined;
  control.process_count = std::max(control.process_count, index + 1);
  return p;
}

// A new process, since then. It goes on in its parent's program, or executes another.
void Sampler::follow(pid_t pid, pid_t parent, Time since) {
  if (!options_.follow || processes_.contains(pid) || !process::own_id(pid)) return;
  if (processes_.size() >= rt::max_sample_processes / 2) return not_followed(pid, "there are too many");
  if (!has_ours(pid)) {
    if (!is_told_) executed(pid);  // else we are
    return;
  }
  auto from = processes_.find(parent);
  if (from == processes_.end()) return;
  if (is_left_alone(pid)) return;
  // It is about to execute another program, most often; or to be traced by its parent, and must not stand still for us at that instant.
  bool shares_memory = share_memory(pid, parent);
  if (shares_memory || from->second.code.is_tracer() || !from->second.code.is_complete()) {
    constexpr auto long_time = 1s;
    if (steady_clock::now() < since + long_time) return void(newborn_.try_emplace(pid, parent, since));
    if (shares_memory) return not_followed(pid, "it shares the memory of its parent, and is no thread of it");
  }
  Process& p = add(pid, parent);
  const Process& q = from->second;
  rt::SampleControl& control = shared_->control();
  p.code = q.code;
  p.has_ours = true;
  control.processes[p.index].code = control.processes[q.index].code;
  control.processes[p.index].action = control.processes[q.index].action;
  if (!by_perf_ || begin_stopped(p)) return;
  processes_.erase(pid);
  if (has_ours(pid)) newborn_.try_emplace(pid, parent, steady_clock::now());  // it blocks the signal
}

void Sampler::find_children(const Process& p) {
  for (pid_t tid : threads_of(p.pid)) {
    std::ifstream children(fmt::format("/proc/{}/task/{}/children", p.pid, tid));
    for (pid_t child; children >> child;)
      if (!processes_.contains(child)) newborn_.try_emplace(child, p.pid, steady_clock::now());
  }
}

void Sampler::executed(pid_t pid) {
  newborn_.erase(pid);
  if (has_ours(pid)) return;  // this was told of late: we have entered it meanwhile
  pid_t parent = process::parent_of(pid);
  if (auto old = processes_.find(pid); old != processes_.end()) {
    parent = old->second.parent;
    ended(old->second, "exec");
  }
  if (!options_.follow || !process::own_id(pid)) return;
  if (processes_.size() >= rt::max_sample_processes / 2) return not_followed(pid, "there are too many");
  if (is_left_alone(pid)) return;
  if (!process::is_64_bit(pid)) return not_followed(pid, "a 32-bit program; Weir samples 64-bit x86 programs");
  auto done = enter(add(pid, parent), false);
  if (done) return;
  not_followed(pid, done.error().what);
  processes_.erase(pid);
}

void Sampler::not_followed(pid_t pid, std::string why) {
  std::string state = process::status_word(pid, "State");
  if (state.empty() || state == "Z" || state == "X") return;  // it has ended: there was nothing to follow
  not_followed_++;
  why_not_followed_ = std::move(why);
}

void Sampler::ended(Process& p, const char* how, std::optional<int> status) {
  p.program.ended_by = how;
  p.program.exit_status = status;
  p.is_blind &= !p.entry;  // (it has not begun, otherwise)
  end_events(p);
  collect(p);
  processes_.erase(p.pid);
}

// The handler has met code or a stack that it does not know, or code was mapped.
void Sampler::attend(Process& p) {
  if (!p.has_ours || p.is_executing) return;
  auto begin = steady_clock::now();
  p.wants_look = false;
  bool has_changed = p.code.look(p.pid, p.index, *shared_, *images_);
  if (!p.code.has_ours()) return;  // it has executed another program, of which we are about to be told
  p.pause = has_changed ? 0ms : std::clamp(2 * p.pause, 1ms, longest_pause);
  if (has_changed) code_changed(p);
  find_written_names(p, p.program.started);
  auto end = steady_clock::now();
  p.next_look = end + std::max<steady_clock::duration>(p.pause, 10 * (end - begin));  // (hundreds of libraries take time)
  for (auto [place, tid] : slots_of(p)) {
    rt::SampleSlot& slot = shared_->slot(place);
    if (!slot.wanted || slot.stack.high) continue;
    rt::KnownStack stack = p.code.own_stack(p.pid, slot.wanted, slot.fs, static_cast<pid_t>(tid) == p.own_pid);
    slot.stack.limit = stack.limit, slot.stack.low = stack.low;
    __atomic_store_n(&slot.stack.high, stack.high, __ATOMIC_RELEASE);
  }
}

// Threads that block our signal have it waiting.
void Sampler::look_at_threads(Process& p) {
  uint64_t bit = signal_bit(signal_);
  for (pid_t tid : threads_of(p.pid))
    if (signals_in(tid, "SigPnd") & signals_in(tid, "SigBlk") & bit) unblock(p, tid);
}

// The kernel has counted the time of the program and of all its children. What of it was not sampled is told.
void Sampler::note_unseen_time() {
  if (options_.event != "cpu" || !options_.follow || !main_ended_) return;
  uint64_t samples = 0;
  for (const Program& p : programs_)
    for (const Thread& t : p.threads) samples += t.counts.samples + t.lost;
  double unseen = cpu_seconds_ - double(samples) / options_.rate;
  constexpr double some = 0.1;  // … of it, and in seconds
  if (unseen < some * cpu_seconds_ || unseen < some) return;
  auto main = std::ranges::find(programs_, static_cast<uint32_t>(main_pid_), &Program::pid);
  if (main != programs_.end())
    main->notes.push_back(
        fmt::format("{:.2f} s of the {:.2f} s of CPU time that it and its children took are not in the samples; "
                    "most often of processes that end some milliseconds after they begin, or that weir could not follow",
                    unseen, cpu_seconds_));
}

// ---- The end --------------------------------------------------------------------------------------------------------------
Result<int> Sampler::finish() {
  images_->stop();
  while (!processes_.empty()) {
    Process& p = processes_.begin()->second;
    if (has_ended(p)) {
      ended(p, "");
      continue;
    }
    if (switches_) look_at_sleepers(p);
    leave(p);
    left_running_++;
    ended(p, "detach");
  }
  watch_ = {};  // descriptors may be few
  note_unseen_time();
  Outcome outcome;
  outcome.by = {.event = options_.event,
                .source = by_perf_ ? "perf" : "timer",
                .rate = is_time() ? options_.rate : 0,
                .period = event_.period,
                .unwind = options_.unwind,
                .confidence = options_.walk.confidence,
                .verify = options_.verify,
                .sees_kernel = !by_perf_ || !event_.excludes_kernel};
  if (options_.measure) outcome.cost = cost_of(programs_);
  outcome.programs = std::move(programs_);
  outcome.left_running = options_.pids.empty() ? left_running_ : 0;
  outcome.not_followed = not_followed_;
  outcome.why_not_followed = why_not_followed_;
  outcome.weir = weir_;
  outcome.cut_short = is_cut_short_;
  auto written = options_.write(outcome);
  dismiss_guardian();
  if (!written) return std::unexpected(written.error());
  return status_;
}

}  // namespace weir::sample
