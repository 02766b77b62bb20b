// One sampled run: the processes, and what happens to them. Its parts: sampler.cc (the loop), inject.cc (into a process, and out of it
// again), guards.cc (what its threads ask for), traced.cc (processes of debuggers), collect.cc (what is left), guardian.cc (for the day that
// Weir is killed).
#pragma once

#include <sys/resource.h>

#include <chrono>
#include <map>
#include <set>

#include "base/truncation.h"
#include "process/threads.h"
#include "process/tracee.h"
#include "sample/code.h"
#include "sample/events.h"
#include "sample/sample.h"

namespace weir::sample {

using Time = std::chrono::steady_clock::time_point;

// A thread that waits: since which sample, and where.
struct Sleeper {
  uint64_t since = 0, sp = 0;
  Thread path;
};

// A process that is sampled, from one exec to the next.
struct Process {
  pid_t pid = 0, own_pid = 0;  // own_pid: as it knows itself
  uint32_t index = 0;          // in the control block
  pid_t parent = 0;            // 0: the one that Weir started, or attached to
  Program program;             // as far as it is known
  Code code;
  Fd pidfd, perf_map, jit_dump;  // see Program
  std::vector<Fd> events, guards;
  std::optional<Time> events_begin;            // when threads that were stopped wait again:
  std::map<pid_t, uint64_t> awaited;           // those that have not run since, and how often they had
  Fd entry;                                    // a breakpoint where the program begins
  Time entered = {};                           // when we were done with it
  std::vector<uint64_t> guarded;               // instructions with a breakpoint
  bool is_blind = false;                       // time in the kernel is not sampled
  std::string why_unsampled;                   // it has no events since it began: a sentence
  bool is_confined = false;                    // by seccomp: its handler makes no system calls
  bool has_begun = false;                      // it ran before Weir came
  bool has_ours = false;                       // our memory is mapped there, and the signal is ours
  bool is_executing = false;                   // … for a moment only: it has asked us to stop, and must have no events
  bool is_left_alone = false;                  // another process traces it: no events either
  uint64_t periods_before = 0;                 // in samples when its events began: see SampledProcess::periods
  std::optional<Time> waits_since;             // for us
  std::chrono::nanoseconds delay_before{0};    // Images::delay() then
  std::map<pid_t, uint64_t> unblocked;         // threads whose mask we have changed: to what
  std::map<pid_t, int> timers;                 // of threads: their ids; −1: none was to be had
  std::vector<int> idle_timers;                // … whose threads have ended
  std::map<uint32_t, std::string> names = {};  // of threads
  std::map<uint32_t, Sleeper> sleepers = {};
  bool wants_look = false;             // code was mapped
  Time next_look = {};                 // at its map, no sooner
  std::chrono::milliseconds pause{0};  // between such looks: longer, where they find nothing new
};

bool has_ended(const Process& p);  // perhaps nobody has asked how, and its number is still there

class Sampler {
 public:
  explicit Sampler(const Options& options) : options_(options) {}
  Result<int> run();

 private:
  Result<> set_up();
  Result<> choose_source();
  bool is_time() const { return options_.event == "cpu" || options_.event == "wall"; }
  Result<> spawn();
  Result<> attach_all();
  void loop();
  bool is_over() const;
  void wait();
  void take_signals();
  void reap();
  void look_at_watch();
  void look_around();
  void look_at(Process& p);
  void look_at_seccomp(Process& p);
  Result<int> finish();
  void note_unseen_time();

  // Processes.
  Process& add(pid_t pid, pid_t parent);
  void executed(pid_t pid);
  void ended(Process& p, const char* how, std::optional<int> status = {});
  void follow(pid_t pid, pid_t parent, Time since);
  void not_followed(pid_t pid, std::string why);
  void find_children(const Process& p);
  void attend(Process& p);
  void look_at_threads(Process& p);

  // inject.cc. All threads of the process stand still.
  Result<> put_in(Process& p, pid_t agent, const std::vector<pid_t>& tids);
  Result<> map_files(process::RemoteSyscalls& remote, const Process& p);
  void unmap_files(process::RemoteSyscalls& remote);
  rt::KernelSigaction our_action() const;
  Result<rt::KernelSigaction> exchange_action(process::RemoteSyscalls& remote, const rt::KernelSigaction& action);
  Result<> begin_timers(Process& p, process::RemoteSyscalls& remote, const std::vector<pid_t>& tids);
  void take_out(Process& p, process::RemoteSyscalls& remote);
  // Events need no standstill, but a thread that is created meanwhile may be left out. Where one waits in a call, they begin when it does so
  // again: not at once.
  Result<> begin_events(Process& p, const std::vector<pid_t>& tids, bool at_once);
  void begin_clock(Process& p, const std::vector<pid_t>& tids, bool excludes_kernel);
  void look_at_clock(Process& p);
  void await(Process& p, const std::vector<pid_t>& tids);
  void begin_awaited_events(Process& p);
  void begin_events_again(Process& p);
  void end_events(Process& p);
  void enable_events(Process& p);
  std::function<bool()> while_serving();
  // These stop it.
  Result<> enter(Process& p, bool watch);
  Result<> begin_stopped(Process& p);
  void take_dispatches(Process& p, const std::vector<pid_t>& tids);
  void give_back_dispatches(const std::vector<pid_t>& tids);
  void time_new_threads(Process& p);
  bool is_in_handler(pid_t tid) const;
  void unblock(Process& p, pid_t tid);
  void unblock_stopped(Process& p, pid_t tid);
  void block_again(Process& p);
  void leave(Process& p);

  // guards.cc
  std::vector<uint64_t> sites_to_guard(const Process& p) const;
  void guard(Process& p, const std::vector<pid_t>& tids);
  Result<Fd> open_guard(const Process& p, pid_t tid, uint64_t at);
  void end_guards(Process& p);
  bool is_whole_guard(const Process& p) const;
  void guard_entry(Process& p, const user_regs_struct& regs);
  void forget_entry(Process& p);
  bool has_waited(Process& p);
  bool is_ready_to_run(Process& p);
  void wait_for_code(Process& p);
  void code_changed(Process& p);
  void begin_late_events(Process& p);
  void take_news();
  void answer(Process& p);

  // traced.cc
  bool leave_alone(pid_t pid);
  bool is_left_alone(pid_t pid);
  void come_back();

  // guardian.cc
  void renew_guardian();
  void dismiss_guardian();
  void wait_for_guardian();
  [[noreturn]] void stand_by(Fd dismissed, pid_t weir);

  // sleepers.cc
  void look_at_sleepers(Process& p);
  void wake(const Process& p, const rt::SampleSlot& slot, uint32_t tid, Thread& thread) const;

  // collect.cc
  void collect(Process& p);
  void take_records();
  void collect_slot(Process& p, uint32_t place, uint32_t tid);
  // Their places and threads.
  std::vector<std::pair<uint32_t, uint32_t>> slots_of(const Process& p) const;
  void collect_ended_threads(Process& p);
  void name_threads(Process& p);
  void find_written_names(Process& p, int64_t since);
  void find_perf_map(Process& p, int64_t since);
  bool has_written_code(const Process& p) const;

  const Options& options_;
  TruncationGuard truncation_;  // images are other people's files
  std::optional<Shared> shared_;
  std::optional<Images> images_;
  Watch watch_;
  bool only_mapped_ = false;                  // that was all that it told last
  bool has_watch_ = false, is_told_ = false;  // it tells of all processes; it has, and nothing was lost
  bool by_perf_ = true;
  int signal_ = 0;
  Event event_;
  std::optional<Event> switches_;    // wall time,
  uint64_t period_ = 0, began_ = 0;  // … in ticks of the time stamp counter
  std::map<pid_t, Process> processes_;
  struct Newborn {
    pid_t parent;
    Time since;
  };
  std::map<pid_t, Newborn> newborn_;  // children that are not sampled yet
  struct LeftAlone {
    Time since;
    bool is_wanted = false;  // it is to be sampled when its tracer has left it
  };
  std::map<pid_t, LeftAlone> left_alone_;
  pid_t held_ = 0;  // that stands still for us
  std::vector<Program> programs_;
  Fd signals_;
  sigset_t mask_ = {};       // as it was
  rlimit descriptors_ = {};  // as it was
  pid_t main_pid_ = 0;
  bool main_ended_ = false, leave_wanted_ = false;
  int status_ = 0;
  double cpu_seconds_ = 0;  // of the program, and its children
  uint32_t left_running_ = 0, not_followed_ = 0;
  std::string why_not_followed_;  // the last one
  std::optional<Time> deadline_;
  Time next_sweep_ = {};
  // The guardian is a copy of this process as it was when it was made. Slots that were collected since are kept for it.
  pid_t guardian_ = 0;
  Fd guardian_pipe_, guardian_event_;  // the event: it has closed what it has of ours
  bool guardian_is_old_ = true, is_cut_short_ = false;
  Time guardian_made_ = {};
  std::set<uint32_t> retired_;
  pid_t weir_ = getpid();
};

std::vector<pid_t> threads_of(pid_t pid);
bool has_ours(pid_t pid);
uint64_t signal_bit(int signal);
// A set of signals, as /proc/TID/status has it.
uint64_t signals_in(pid_t tid, const char* name);

// A slot, and its tree as call paths by address.
Thread collect_thread(const rt::SampleSlot& slot, std::span<const TreeNode> nodes, const Code& code);
// Adds the call paths of one thread to those of another.
void merge(Thread& into, const Thread& from);

}  // namespace weir::sample
