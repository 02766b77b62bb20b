// The loop: requests from shared memory, answered in the order of their slots.
//
// A thread of the target sets its bit in `posted` and waits. While requests keep coming Weir spins for the next one (an
// answer then takes half a microsecond); then it sleeps on the doorbell, which requests and SIGCHLD ring.

#include "engine/server.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <fstream>
#include <thread>

namespace weir::engine {

namespace {

constexpr long sleep_ns = 100'000'000;  // then look for processes that ended without a word
constexpr long quiet_sleep_ns = 50'000;
constexpr long mover_sleep_ns = 1'000'000;  // until another thread has executed a program, or has not
constexpr auto newborn_pause = std::chrono::microseconds(100);
constexpr int newborn_looks =
    3000;  // a third of a second; more where the processor is wanted by others, and so by the newborn
constexpr auto linger_time = std::chrono::milliseconds(1);
constexpr auto switch_time = std::chrono::microseconds(20);  // another process ran in between

uint32_t* child_doorbell;  // for the signal handler
volatile sig_atomic_t child_event;

void on_child(int) {
  child_event = 1;
  __atomic_fetch_add(child_doorbell, 1, __ATOMIC_SEQ_CST);
}

volatile sig_atomic_t forwarded_signal;
void on_forward(int sig) {
  forwarded_signal = sig;
  __atomic_fetch_add(child_doorbell, 1, __ATOMIC_SEQ_CST);
}

volatile sig_atomic_t detach_wanted;
void on_detach(int) {
  detach_wanted = 1;
  __atomic_fetch_add(child_doorbell, 1, __ATOMIC_SEQ_CST);
}

void futex_wait(uint32_t* word, uint32_t value, long ns) {
  timespec t{ns / 1'000'000'000, ns % 1'000'000'000};
  syscall(SYS_futex, word, FUTEX_WAIT, value, &t, nullptr, 0);
}

}  // namespace

extern "C" const std::byte weir_runtime_image[], weir_runtime_image_end[];

Result<int> run(const Options& options) {
  Server server(options);
  auto status = server.run();
  if (!status) server.dismiss_guardian();
  return status;
}

// The handlers ring a doorbell that goes with us.
Server::~Server() {
  for (int sig : {SIGCHLD, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT, SIGINT, SIGQUIT}) signal(sig, SIG_DFL);
  child_doorbell = nullptr;
  faults_.reset();  // its thread, too
}

Result<int> Server::run() {
  TRY_VOID(set_up());
  TRY_VOID(is_attached() ? attach_all() : spawn());
  loop();
  if (is_attached()) detach_all();
  if (is_attached() && faults_) faults_->stop();
  await_newborn();
  look_for_ended();
  while (end_a_space()) {}
  if (failed_) main_status_ = 125;
  if (processes_.empty()) return finish(Outcome::Ended);
  TRY(bool behind, stay_behind());
  if (!behind) {
    for (auto& [pid, p] : processes_) report(p);  // what they did so far
    return finish(Outcome::LeftRunning);
  }
  while (!processes_.empty()) {
    loop();
    await_newborn();
  }
  return finish(Outcome::Behind);
}

// The guardian stands by until all is written; that of processes that are left running belongs to who serves them on.
Result<int> Server::finish(Outcome::End end) {
  Outcome outcome{end, cut_short_, guardian_.has_ended_any(), weir_pid_, stats_, user_time_, system_time_, no_faults_};
  TRY_VOID(options_.write(outcome));
  if (end != Outcome::LeftRunning) guardian_.dismiss();
  TRY_VOID(options_.tell(outcome));
  return main_status_;
}

// A program may end just after it forked, before its child has said hello, or while that maps what is to be had of this process.
void Server::await_newborn() {
  auto is_newborn = [](const Slot& s) { return s.is_reserved() && !s.is_thread(); };
  auto is_mapping = [](const auto& p) { return p.second.memory && p.second.memory->has_caller(); };
  auto is_any = [&] { return std::ranges::any_of(slots_, is_newborn) || std::ranges::any_of(processes_, is_mapping); };
  for (int i = 0; i < newborn_looks && is_any(); i++) {
    serve_posted();
    std::this_thread::sleep_for(newborn_pause);
  }
}

// The program has ended, others that it started have not: a copy of this process goes on to serve them, and the shell gets its
// prompt. Returns true in the copy.
Result<bool> Server::stay_behind() {
  guardian_.expect_copy();
  take_faults();
  pid_t pid = fork();
  if (pid < 0) {
    auto why = fail_errno("fork");
    for (auto& [process, p] : processes_) kill(process, SIGKILL);
    return why;
  }
  if (pid > 0) {
    control()->weir_pid = static_cast<uint32_t>(pid);
    (void)faults_.release();  // (the copy reads what comes; that this process still has it helps it)
    return false;
  }
  control()->weir_pid = static_cast<uint32_t>(weir_pid_ = getpid());
  setsid();
  Fd null(open("/dev/null", O_RDWR));
  for (int fd : {0, 1, 2}) dup2(null.get(), fd);
  behind_ = true;
  take_faults_over();
  renew_guardian();
  return true;
}

namespace {
// What the runtime's image has of a tool.
rt::ToolEntry tool_entry(std::span<const std::byte> image, const rt::RuntimeHeader& header, std::string_view name) {
  if (name.empty()) return {};
  for (uint64_t at = header.tools; at < header.tools_end; at += sizeof(rt::ToolEntry)) {
    rt::ToolEntry entry;
    memcpy(&entry, image.data() + (at - rt::runtime_base), sizeof entry);
    if (name == std::string_view(entry.name, strnlen(entry.name, sizeof entry.name))) return entry;
  }
  CHECK(!"the runtime has no part of this tool");
  return {};
}
}  // namespace

Result<> Server::set_up() {
  // A process of the target takes half a dozen descriptors here; the target itself keeps the limit that it was given.
  getrlimit(RLIMIT_NOFILE, &descriptors_);
  rlimit all = {descriptors_.rlim_max, descriptors_.rlim_max};
  setrlimit(RLIMIT_NOFILE, &all);
  signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes is told as an error
  size_t size = static_cast<size_t>(weir_runtime_image_end - weir_runtime_image);
  TRY(runtime_, SharedMemory::create("weir-runtime", (size + 4095) & ~size_t{4095}));
  memcpy(runtime_.mapping.data(), weir_runtime_image, size);
  memcpy(&header_, weir_runtime_image, sizeof header_);
  CHECK(header_.version == rt::abi_version && header_.begin - rt::runtime_base < size);
  TRY(slots_, Slots::create(header_, tool_entry(runtime_.mapping.bytes(), header_, options_.runtime_part)));
  control()->weir_pid = static_cast<uint32_t>(getpid());
  TRY(guardian_, Guardian::create());
  renew_guardian();
  child_doorbell = &control()->doorbell;
  struct sigaction action{};
  action.sa_handler = on_child;
  action.sa_flags = SA_RESTART;  // the doorbell has changed all the same
  sigaction(SIGCHLD, &action, &child_action_);
  return {};
}

// The terminal's signals reach a program that we started, and it decides; what is sent to Weir alone is passed on. Where we are
// attached, they say that it is enough.
void Server::watch_signals() {
  auto set = [](void (*handler)(int), std::initializer_list<int> signals) {
    struct sigaction action{};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    for (int sig : signals) sigaction(sig, &action, nullptr);
  };
  if (is_attached()) {
    set(on_detach, {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2});
    return set(SIG_IGN, {SIGTSTP, SIGTTIN, SIGTTOU});  // those that it is to serve would stand still
  }
  set(SIG_IGN, {SIGINT, SIGQUIT});
  set(on_forward, {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT});
}

// To the program; when that has ended, to those that outlive it. (A shell continues both, us and the program.)
void Server::forward(int sig) {
  auto is_for = [&](pid_t pid) { return sig != SIGCONT || process::is_stopped(pid); };
  if (!main_ended_ && is_for(main_pid_)) kill(main_pid_, sig);
  if (!main_ended_) return;
  for (auto& [pid, p] : processes_)  // (they are not our children, and their numbers may be others' by now)
    if (is_for(pid)) syscall(SYS_pidfd_send_signal, p.pidfd.get(), sig, nullptr, 0);
}

bool Server::detach_is_wanted() const {
  return detach_wanted || (deadline_ && std::chrono::steady_clock::now() >= *deadline_);
}

bool Server::is_over() const {
  if (is_attached()) return processes_.empty() || detach_is_wanted();
  return behind_ ? processes_.empty() : main_ended_;
}

void Server::loop() {
  if (!is_attached()) watch_signals();
  bool has_served = false;  // since it slept
  while (!is_over()) {
    if (child_event) {
      child_event = 0;
      reap();
      continue;
    }
    if (int sig = forwarded_signal) {
      forwarded_signal = 0;
      forward(sig);
    }
    look_around();
    if (__atomic_exchange_n(&has_faults_, false, __ATOMIC_RELAXED)) take_faults();
    bool has_asked = serve_posted();
    if (has_versions_) look_at_versions();
    if (make_move() || has_asked) {
      has_served = true;
      continue;
    }
    bool more = spin(spins_);
    spins_ = rt::adapted_spins(spins_, more);
    if (more || (std::exchange(has_served, false) && linger())) continue;
    sleep();
  }
}

// Is there a request, or will there be one before long?
bool Server::spin(uint32_t times) {
  for (uint32_t i = 0; i < times; i++) {
    if (__atomic_load_n(&has_faults_, __ATOMIC_RELAXED)) return true;
    for (uint32_t w = 0; w < posted_words(); w++)
      if (__atomic_load_n(&control()->posted[w], __ATOMIC_RELAXED)) return true;
    if (child_event) return true;
    auto space = last_translated_.lock();
    if (!space || !space->make_page_ahead()) __builtin_ia32_pause();
  }
  return false;
}

// The same for a while longer: to be woken takes longer than most answers. But where others want this processor it is theirs, and a
// sleeper that is woken gets it back sooner.
bool Server::linger() {
  using std::chrono::steady_clock;
  if (has_quiet()) return false;
  for (auto end = steady_clock::now() + linger_time; steady_clock::now() < end;) {
    auto before = steady_clock::now();
    sched_yield();
    bool is_wanted = steady_clock::now() - before > switch_time;
    if (spin(rt::min_spins)) return true;
    if (is_wanted) return false;
  }
  return false;
}

bool Server::has_quiet() const {
  return std::any_of(processes_.begin(), processes_.end(), [](const auto& p) { return p.second.quiet; });
}

// Processes that are not our children end without a word: they are looked for now and then.
void Server::look_around() {
  auto now = std::chrono::steady_clock::now();
  if (now < next_look_) return;
  next_look_ = now + std::chrono::nanoseconds(sleep_ns);
  take_faults();
  if (behind_ || is_attached() || processes_.size() > 1) look_for_ended();
  end_a_space();
}

void Server::sleep() {
  rt::ControlBlock* c = control();
  uint32_t doorbell = __atomic_load_n(&c->doorbell, __ATOMIC_SEQ_CST);
  __atomic_store_n(&c->sleeping, 1, __ATOMIC_SEQ_CST);
  bool more =
      child_event || forwarded_signal || detach_wanted || __atomic_load_n(&has_faults_, __ATOMIC_SEQ_CST) || end_a_space();
  for (uint32_t w = 0; w < posted_words() && !more; w++) more = __atomic_load_n(&c->posted[w], __ATOMIC_SEQ_CST);
  long ns = has_quiet() ? quiet_sleep_ns : sleep_ns;
  if (!movers_.empty()) ns = std::min(ns, mover_sleep_ns);
  auto now = std::chrono::steady_clock::now();
  if (has_versions_) ns = std::clamp<long>((next_look_at_versions_ - now).count(), 1, ns);
  if (deadline_) ns = std::clamp<long>((*deadline_ - now).count(), 1, ns);
  if (!more) futex_wait(&c->doorbell, doorbell, ns);
  __atomic_store_n(&c->sleeping, 0, __ATOMIC_SEQ_CST);
  if (!more) look_around();
}

// What is left to do for a program that has ended: when there is nothing else to do.
bool Server::end_a_space() {
  // A large archive takes a while to write, in which nobody is served: it waits for the end, if it is not the fourth.
  constexpr size_t large = 4096, most_waiting = 3;
  bool may_take_long = is_over() || ended_.size() > most_waiting;
  auto is_next = [&](const std::shared_ptr<Space>& s) { return may_take_long || s->to_keep() < large; };
  auto next = ended_.end();
  for (auto s = ended_.begin(); s != ended_.end(); ++s)
    if (is_next(*s) && (next == ended_.end() || (*s)->to_keep() > (*next)->to_keep())) next = s;
  if (next == ended_.end()) return false;
  // Who has the most writes the archive, with what the others have besides.
  std::shared_ptr<Space> space = *next;
  ended_.erase(next);
  for (const auto& other : ended_) space->translate_all_of(*other);
  space->save_archives();
  return true;
}

bool Server::serve_posted() {
  bool any = false;
  for (uint32_t slot : std::exchange(forking_, {})) serve(slot);
  for (uint32_t w = 0; w < posted_words(); w++) {
    if (!__atomic_load_n(&control()->posted[w], __ATOMIC_RELAXED)) continue;
    uint64_t bits = __atomic_exchange_n(&control()->posted[w], 0, __ATOMIC_SEQ_CST);
    for (; bits; bits &= bits - 1) {
      serve(w * 64 + static_cast<uint32_t>(__builtin_ctzll(bits)));
      any = true;
    }
  }
  return any;
}

// The process cannot go on under Weir, and must not go on beside it.
void Server::end_with_message(Process& p, const std::string& why) {
  if (p.is_ended_by_us) return;
  pollfd gone{p.pidfd.get(), POLLIN, 0};
  if (poll(&gone, 1, 50) > 0) return;  // it was on its way out, and cannot be read any more
  if (is_attached()) {  // … but it can natively: a thread goes on in the program's own code until it is let go
    say("{}: {}; weir lets go of it", p.run.program, why);
    detach_wanted = failed_ = true;
    return;
  }
  p.is_ended_by_us = true;
  say("{}: {}; the process is ended", p.run.program, why);
  kill(p.pid, SIGKILL);
  if (p.pid == main_pid_) failed_ = true;
}

}  // namespace weir::engine
