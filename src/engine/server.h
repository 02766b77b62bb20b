// The state of one run, shared by its parts: the loop (server.cc), the answers to requests (requests.cc), processes and their programs
// (programs.cc), injection (inject.cc), processes that run already (attach.cc, detach.cc), and what the guardian does when Weir is
// killed (heir.cc). Guardian and Keeper, the processes beside Weir, are their own.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <map>

#include "base/truncation.h"
#include "engine/engine.h"
#include "engine/guardian.h"
#include "engine/mapping.h"
#include "engine/posted.h"
#include "engine/slots.h"
#include "engine/space.h"
#include "process/page_faults.h"
#include "process/threads.h"
#include "process/tracee.h"
#include "rt/faults.h"
#include "rt/hooks.h"

namespace weir::engine {

struct Process {
  pid_t pid = 0;
  Fd pidfd;
  std::shared_ptr<Space> space;
  profile::LiveRun run = {};
  pid_t own_pid = 0;  // as the process knows it
  Fd perf_map = {};   // see run.perf_map
  std::vector<uint32_t> slots = {};
  uint32_t first_slot = 0;  // holds the signal actions: kept until the program ends
  std::shared_ptr<Memory> memory;
  std::vector<rt::Call> calls = {};  // that its next answer will have it make, before it maps what is new
  bool quiet = false;                // it has a seccomp filter, and cannot wake us
  bool elsewhere = false;            // in another pid namespace
  bool left_alone = false;           // it runs natively
  bool has_begun = false;
  AppPc begin = {};             // where the kernel would have it begin,
  uint64_t stack = 0;           // … and its rsp there
  bool is_ended_by_us = false;  // see end_with_message()

  void note_status(int status);  // of waitpid()
};

// Unmaps all that is ours in a process that stands still, the tool's regions included.
Result<> unmap_ours(process::RemoteSyscalls& remote, pid_t tid, const Space& space);
// Where a thread that stands still goes on in the cache.
Result<> enter_cache(Space& space, Version version, pid_t tid, user_regs_struct& regs);
// The system call that a thread waits in, and the address behind its instruction; 0: it runs, or it cannot be told.
struct WaitingCall {
  int64_t number = -1;
  uint64_t behind = 0;
};
WaitingCall waits_in(pid_t pid, pid_t tid);
// The pages that a range touches; an empty one where there is no such range.
AppRange whole_pages(AppRange range);
inline AppRange whole_pages(const rt::Range& range) { return whole_pages(AppRange{{range.begin}, {range.end}}); }

class Server {
 public:
  explicit Server(const Options& options) : options_(options) {}
  ~Server();
  Result<int> run();
  void dismiss_guardian() { guardian_.dismiss(); }

 private:
  // server.cc
  Result<> set_up();
  Result<int> finish(Outcome::End end);
  void watch_signals();
  void forward(int sig);
  bool is_over() const;
  bool detach_is_wanted() const;
  void loop();
  void await_newborn();
  Result<bool> stay_behind();
  bool serve_posted();
  size_t posted_words() const { return (slots_.size() + 63) / 64; }
  bool end_a_space();
  bool spin(uint32_t times);
  bool linger();
  bool has_quiet() const;
  void look_around();
  void sleep();
  void end_with_message(Process& p, const std::string& why);
  rt::ThreadBlock* block(uint32_t slot) const { return slots_.block(slot); }
  std::byte* memory_of(uint32_t slot) const { return reinterpret_cast<std::byte*>(block(slot)); }
  rt::ControlBlock* control() const { return slots_.control(); }

  // requests.cc
  void serve(uint32_t slot);
  void answer(uint32_t slot);
  Answer handle(Process& p, uint32_t slot, const Posted& r);
  bool must_map_first(Process& p, uint32_t slot, const Posted& r);
  Memory::Caller caller(Process& p, uint32_t slot) const { return {p.pid, slot, *block(slot), *p.space, p.quiet, p.calls}; }
  bool send_calls(Process& p, uint32_t slot) { return p.memory->send(caller(p, slot)); }
  // Where the target finds request.text.
  static uint64_t text_address(uint32_t slot) {
    return Slots::address(slot) + offsetof(rt::ThreadBlock, request) + offsetof(rt::RequestBlock, text);
  }
  struct Transfer {
    AppPc target;
    Version version = 0;
    bool is_direct = false;                     // the table need not lead there
    bool arrives = false;                       // where the table leads
    std::optional<instrument::Exit> site = {};  // of an indirect one
  };
  std::optional<Transfer> transfer_of(const Process& p, uint32_t slot, const Posted& r) const;
  Version version_of(const Space& space, uint32_t slot) const;
  rt::GoOn go_on(Process& p, uint32_t slot, const Transfer& transfer);
  rt::GoOn link(Process& p, uint32_t slot, const Posted& r);
  void renew(Process& p, const rt::StaleRequest& r);
  rt::WhereAnswer where(Process& p, const rt::WhereRequest& r);
  instrument::Asking asking(uint32_t slot) const;
  rt::SlotAnswer begin_thread(Process& p, uint32_t slot, const rt::NewThreadRequest& r);
  std::vector<rt::OpenCall> open_calls(uint32_t slot) const;
  void copy_open_calls(uint32_t parent, uint32_t child);
  bool awaits_child(uint32_t slot, const Posted& r);
  void drop_thread(uint32_t slot, const rt::NoThreadRequest& r);
  void change(Process& p, const rt::ChangeRequest& r);
  void executable(Process& p, uint32_t slot, const rt::ExecutableRequest& r);
  void begin_filter(Process& p, const rt::QuietRequest& r);
  Result<> part(Process& p);
  bool is_shared(const Process& p) const;
  void leave_dead_code(uint32_t slot, const Space& space);
  void flush(Space& space);
  void reuse_dead(Space& space);
  bool is_out_of_dead_code(uint32_t slot, const Space& space, uint64_t epoch);

  // programs.cc
  Result<> spawn();
  void reap();
  void look_for_ended();
  void find_exit(Process& p);
  void process_ended(pid_t pid);
  void program_ended(Process& p);
  void report(Process& p);
  const profile::LiveRun& run_of(Process& p) const;
  bool hello(uint32_t slot, const rt::HelloRequest& r);
  void copy_regions(Process& p);
  void exec_begins(uint32_t slot, const rt::ExecRequest& r);
  void exec_failed(pid_t tid);
  void exec_stop(pid_t pid);
  void thread_ended(uint32_t slot);
  void collect(Process& p, uint32_t slot);
  void collect_regions(Process& p);
  void look_for_overflow(const Process& p, uint32_t slot);
  uint32_t allocate_slot(pid_t pid, pid_t tid);
  void release_lost_children(pid_t pid, pid_t tid);
  bool has_silent_child(pid_t pid, pid_t tid) const { return count_silent_children(pid, tid); }
  size_t count_silent_children(pid_t pid, pid_t tid) const;
  void free_slot(uint32_t slot);
  void end_frames(Process& p, uint32_t slot);
  Process* process_of(uint32_t slot);
  void stopped();

  // faults.cc
  void watch_faults(std::span<const pid_t> tids);
  void take_faults();
  void take_faults_over();
  void leave_faults(const std::string& why);
  rt::FaultRecord* fault_record(uint32_t slot, const Process& p, CachePc pc);

  // heir.cc
  bool has_results() const { return options_.on_program_end != nullptr; }
  void enroll(Process& p, uint32_t slot);
  void renew_guardian();
  void adopt_threads();
  [[noreturn]] void inherit();

  // attach.cc
  bool is_attached() const { return !options_.pids.empty(); }
  bool keep_addresses() const { return options_.keep_addresses || is_attached(); }
  Result<> attach_all();
  Result<> attach(pid_t pid);
  Result<> make_ready(pid_t agent, const Space& space, uint32_t first_slot, const RegionFiles& region_files);
  Result<> map_all(process::RemoteSyscalls& remote, pid_t agent, const Space& space, const RegionFiles& region_files);
  Result<> take_actions(process::RemoteSyscalls& remote, uint32_t slot, pid_t tid);
  Result<> set_action(process::RemoteSyscalls& remote, uint32_t slot, uint64_t sig, const rt::KernelSigaction& action);
  Result<rt::KernelSigaction> action_of(process::RemoteSyscalls& remote, uint32_t slot, uint64_t sig);

  // detach.cc
  struct Leaving {  // a thread at an exact place of the program, and what it is to go on with
    pid_t tid;
    user_regs_struct regs;
    uint32_t slot = 0;                 // 0: it never was in the cache
    bool is_native = false;            // it executes the program's own code, to fault there
    rt::ThreadBlock* clock = nullptr;  // it holds the program's zmm31
    bool makes_call = false;           // it is about to make a system call, whose probes have run
  };
  void detach_all();
  bool detach(const std::vector<pid_t>& group);
  bool step_out_of_runtime(pid_t tid, int& signal);
  enum class Leave { ForGood, ForOtherSpace, ForOtherVersion };
  std::optional<Leaving> leave_cache(Process& p, pid_t tid, int& signal, Leave how);
  Result<> give_back_actions(process::RemoteSyscalls& remote, uint32_t slot, pid_t tid, bool ignores_traps);

  // move.cc
  struct Move {
    uint32_t asking;  // slot of the thread that does it
    std::shared_ptr<Memory> memory;
    std::map<pid_t, process::Threads> threads = {};  // by process
    std::vector<Leaving> others = {};
    std::vector<uint32_t> resting = {};  // slots of those that stay in the runtime
    std::vector<CachePc> calls = {};     // … and the calls that they are in, in the new space
    std::shared_ptr<Space> space = {};
    bool steps_out = false;  // threads that are in the runtime
    bool waits = false;      // … one that has come to ask: it is answered as it stands
    bool is_mapped = false;
  };
  bool can_ever_give(AppRange range) const;
  bool give(Process& p, const rt::GiveRequest& r);
  bool wants_move(const Process& p, const Posted& r) const;
  bool is_to_move(const Memory& memory) const;
  bool is_postponed(const Process& p, uint32_t slot, const Posted& r);
  bool is_executing(const Memory& memory);
  bool make_move();
  void move(Process& p, uint32_t slot, const Posted& r);
  Result<> prepare_move(Process& p, const Posted& r);
  Result<> stop_others(Process& p);
  bool all_rest(Process& p);
  bool rests_in_runtime(uint32_t slot) const;
  bool waits_for_child(uint32_t slot) const;
  bool has_newborn(const Memory& memory) const;
  void change_spaces(Process& p);
  void await_mapping(Process& p);
  void let_others_go_on();

  // versions.cc
  friend class ThreadMoves;
  void look_at_versions();
  void look_at_versions_of(const std::shared_ptr<Space>& space);
  void want(uint32_t slot, Version version);
  void arrive_in(uint32_t slot, Version version);
  bool is_sure_to_ask(uint32_t slot) const;
  void send(uint32_t slot);
  bool redirect(uint32_t slot, Leaving& l);

  // inject.cc
  Result<> inject(pid_t pid);
  Result<> map_regions(pid_t pid, const Space& space, const Memory& memory, uint64_t page);
  rt::GoOn begin(Process& p, uint32_t slot);
  Result<AppPc> begin_program(Process& p, uint32_t slot);
  int64_t move_home(Process& p, std::vector<process::Region>& regions, AppPc begin);
  int64_t move_vdso(Process& p, std::vector<process::Region>& regions, AppPc vdso);
  struct Distances {  // what a new program was moved by
    int64_t program = 0, loader = 0, vdso = 0;
  };
  Result<> tell_moved(Process& p, uint32_t slot, const Distances& moved);
  std::optional<AppPc> place(Process& p, pid_t tid, const rt::PlaceRequest& r);
  Result<> mapped(Process& p, uint32_t slot, const rt::MappedRequest& r);
  Result<> add(Process& p, const process::Region& region, std::shared_ptr<elf::Image> image);

  const Options& options_;
  TruncationGuard truncation_;       // of images and archives
  rlimit descriptors_{};             // the limit as it was
  struct sigaction child_action_{};  // … and what was done about SIGCHLD
  Stats stats_;
  std::unique_ptr<process::PageFaults> faults_;
  bool has_faults_ = false;  // there are many to take; set by another thread
  std::string no_faults_;    // why there are none
  Guardian guardian_;
  bool guardian_is_old_ = false;  // there is something that it does not know of
  uint64_t last_serial_ = 0;      // see Guardian::Occupant
  pid_t weir_pid_ = getpid();     // of the process whose guardian this may be
  SharedMemory runtime_;
  rt::RuntimeHeader header_{};
  Slots slots_;
  std::weak_ptr<Space> last_translated_;  // in this space
  std::vector<uint32_t> movers_;          // slots whose requests want their process to move,
  std::vector<uint32_t> parked_;          // … and that wait for that
  std::unique_ptr<Move> moving_;          // a process moves
  std::vector<uint32_t> forking_;         // slots of threads that wait until their child has its copies of regions
  bool has_versions_ = false;                               // there is a tool that has several
  std::chrono::steady_clock::time_point next_look_at_versions_ = {};
  std::vector<uint32_t> wanted_;                           // slots of threads that are to change versions
  std::chrono::steady_clock::duration version_pause_ = {};  // before the next try to have them do so
  std::map<pid_t, Process> processes_;
  std::vector<std::shared_ptr<Space>> ended_;  // of programs that have
  std::map<pid_t, bool> seized_;               // threads that we hold for an exec; false: only until they stop
  pid_t main_pid_ = 0;
  bool main_ended_ = false;
  int main_status_ = 0;
  std::optional<uint64_t> user_time_, system_time_;  // of the program, when it has ended
  bool failed_ = false;                              // Weir had to end the program
  bool cut_short_ = false;                           // Weir was killed, and this is its guardian
  bool behind_ = false;                              // see stay_behind()
  bool detaching_ = false;
  std::optional<std::chrono::steady_clock::time_point> deadline_;  // attached: when to detach
  std::chrono::steady_clock::time_point next_look_ = {};
  uint32_t spins_ = rt::max_spins;  // for the next request
};

}  // namespace weir::engine
