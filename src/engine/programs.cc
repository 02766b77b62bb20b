// Processes and threads of the target: how they begin, execute other programs, and end.

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "engine/server.h"
#include "instrument/inline_code.h"
#include "process/spawn.h"
#include "process/tracee.h"

namespace weir::engine {

AppRange whole_pages(AppRange range) {
  constexpr uint64_t page = 4096, most = uint64_t{1} << 47;
  if (range.end.value > most || range.end < range.begin) return {};
  return {{range.begin.value & ~(page - 1)}, {(range.end.value + page - 1) & ~(page - 1)}};
}

void Process::note_status(int status) {
  run.exit_status = process::shell_status(status);
  run.ended_by = WIFSIGNALED(status) ? "signal" : "exit";
}

Result<> Server::spawn() {
  pid_t weir = getpid();
  TRY(process::Tracee program, process::spawn(options_.command, [&] {
        guardian_.watch(getpid());  // (here, so that there is no instant when nobody knows of it)
        // When we are killed the kernel lets a tracee go: it must not run natively until the guardian comes to end it.
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != weir) _exit(125);
        sigaction(SIGCHLD, &child_action_, nullptr);
        signal(SIGXFSZ, SIG_DFL);
        setrlimit(RLIMIT_NOFILE, &descriptors_);
      }));
  main_pid_ = program.pid();
  watch_faults({&main_pid_, 1});
  auto injected = inject(main_pid_);
  if (!injected) {
    program.end();
    guardian_.forget(main_pid_);
    return injected;
  }
  processes_.at(main_pid_).calls.push_back({SYS_prctl, {PR_SET_PDEATHSIG, 0}, {}, rt::Optional});
  return program.detach();
}

// Everything that the kernel has to tell of children and of threads that we hold.
void Server::reap() {
  int status;
  rusage used;
  auto microseconds = [](const timeval& t) {
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000 + static_cast<uint64_t>(t.tv_usec);
  };
  while (pid_t pid = wait4(-1, &status, WNOHANG | __WALL | WUNTRACED, &used)) {
    if (pid < 0) break;
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      seized_.erase(pid);
      if (guardian_.is(pid)) renew_guardian();
      if (pid == main_pid_) {
        main_ended_ = true;
        main_status_ = process::own_end(status);
        user_time_ = microseconds(used.ru_utime), system_time_ = microseconds(used.ru_stime);
      }
      if (auto p = processes_.find(pid); p != processes_.end()) p->second.note_status(status);
      process_ended(pid);
      continue;
    }
    if (!WIFSTOPPED(status)) continue;
    int event = status >> 16;
    if (process::let_go_of_late(pid, status)) continue;
    if (event == PTRACE_EVENT_EXEC) {
      exec_stop(pid);
    } else if (seized_.contains(pid)) {
      // A signal for a thread that we hold: it gets it. A group stop is let be, until its end is told as a trap.
      bool trap = WSTOPSIG(status) == SIGTRAP;
      if (event == PTRACE_EVENT_STOP && !seized_[pid]) {
        seized_.erase(pid);
        ptrace(PTRACE_DETACH, pid, 0, 0);
      } else if (event == PTRACE_EVENT_STOP) ptrace(trap ? PTRACE_CONT : PTRACE_LISTEN, pid, 0, 0);
      else ptrace(PTRACE_CONT, pid, 0, WSTOPSIG(status));
    } else if (pid == main_pid_) {
      stopped();
    }
  }
}

// The program was stopped: so are we, for the shell that waits for us, unless other processes need us. A SIGCONT for us alone is
// passed on by the loop.
void Server::stopped() {
  if (processes_.size() > 1 || std::ranges::any_of(slots_, &Slot::is_reserved)) return;
  process::stop_with(main_pid_);
}

namespace {
// Would the kernel give the program privileges, which it does not do under ptrace?
bool gains_privileges(pid_t tid, const std::string& path, int64_t directory) {
  std::string place = path.starts_with('/')   ? fmt::format("/proc/{}/root{}", tid, path)
                      : directory == AT_FDCWD ? fmt::format("/proc/{}/cwd/{}", tid, path)
                                              : fmt::format("/proc/{}/fd/{}/{}", tid, directory, path);
  struct stat st{};
  if (geteuid() == 0 || stat(place.c_str(), &st)) return false;
  return (st.st_mode & (S_ISUID | S_ISGID)) || getxattr(place.c_str(), "security.capability", nullptr, 0) > 0;
}
}  // namespace

void Server::exec_begins(uint32_t slot, const rt::ExecRequest& r) {
  pid_t tid = slots_[slot].tid;
  char name[4096] = {};
  process::read(tid, r.path, std::as_writable_bytes(std::span(name, sizeof name - 1)));
  if (auto seized = seized_.find(tid); seized != seized_.end()) {
    seized->second = true;
    return;
  }
  if (!options_.follow || detaching_ || gains_privileges(tid, name, r.directory) ||
      ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL)) {
    stats_.not_followed++;
    return;
  }
  seized_[tid] = true;
}

void Server::exec_failed(pid_t tid) {
  auto seized = seized_.find(tid);
  if (seized == seized_.end()) {
    if (stats_.not_followed) stats_.not_followed--;
    return;
  }
  if (!seized->second) return;
  seized_.erase(seized);
  if (detaching_) return;  // it is held for that
  // The thread waits for our answer, so it can be stopped here. If it does not (it is not the one that asks), it is let go when it
  // comes to stop.
  ptrace(PTRACE_INTERRUPT, tid, 0, 0);
  auto status = process::wait_stop(tid, std::chrono::milliseconds(100));
  if (!status) return;
  if (*status) ptrace(PTRACE_DETACH, tid, 0, **status >> 16 ? 0 : WSTOPSIG(**status));
  else seized_[tid] = false;
}

// A new program begins in the process; its other threads are gone.
void Server::exec_stop(pid_t pid) {
  unsigned long former = 0;
  ptrace(PTRACE_GETEVENTMSG, pid, 0, &former);
  seized_.erase(static_cast<pid_t>(former));
  seized_.erase(pid);
  if (auto old = processes_.find(pid); old != processes_.end()) {
    old->second.run.ended_by = "exec";
    program_ended(old->second);
    Process next;
    next.elsewhere = old->second.elsewhere;
    next.run.parent_pid = old->second.run.parent_pid;
    next.own_pid = old->second.own_pid;
    old->second = std::move(next);
  }
  auto injected = inject(pid);
  bool is_killed = ptrace(PTRACE_DETACH, pid, 0, 0) && errno == ESRCH;
  if (injected) return;
  processes_.erase(pid);
  guardian_.forget(pid);
  if (is_killed) return;
  say("not followed: {}", injected.error().what);
  stats_.not_followed++;
}

void Server::look_for_ended() {
  std::vector<pollfd> fds;
  std::vector<pid_t> pids;
  for (auto& [pid, p] : processes_) {
    fds.push_back({p.pidfd.get(), POLLIN, 0});
    pids.push_back(pid);
  }
  poll(fds.data(), fds.size(), 0);
  // (One that was gone before it could be opened has no descriptor.)
  for (size_t i = 0; i < fds.size(); i++)
    if (fds[i].revents || (fds[i].fd < 0 && kill(pids[i], 0) && errno == ESRCH)) {
      find_exit(processes_.at(pids[i]));
      process_ended(pids[i]);
    }
}

namespace {

// Linux 6.15 tells when somebody has waited for the process.
std::optional<int> status_of_reaped(int pidfd) {
  struct {
    uint64_t mask, cgroup;
    uint32_t ids[11];
    int32_t exit_code;
  } info{1 << 3, 0, {}, 0};  // PIDFD_INFO_EXIT
  static_assert(sizeof info == 64);
  if (ioctl(pidfd, _IOWR(0xff, 11, decltype(info)), &info) || !(info.mask & 1 << 3)) return {};
  return info.exit_code;
}

// Until then, the last word of its stat file does.
std::optional<int> status_of_zombie(pid_t pid) {
  process::Stat stat = process::stat_of(pid);
  if (stat.words[process::StatState] != "Z") return {};
  return static_cast<int>(stat.number(process::StatExitCode));
}

}  // namespace

// How a process ended that is not our child. What the kernel does not tell, its last call may: some tools note it.
void Server::find_exit(Process& p) {
  std::optional<int> status = status_of_reaped(p.pidfd.get());
  if (!status) status = status_of_zombie(p.pid);
  if (!status) status = status_of_reaped(p.pidfd.get());  // (it was waited for just now)
  for (uint32_t slot : p.slots)
    if (!status)
      if (auto noted = p.space->tool().exit_status(memory_of(slot))) status = *noted << 8;
  if (!status) return;
  p.note_status(*status);
  if (is_attached() && p.pid == options_.pids[0]) main_status_ = *p.run.exit_status;  // it is as if we had run it
}

void Server::process_ended(pid_t pid) {
  auto p = processes_.find(pid);
  if (p == processes_.end()) return;
  program_ended(p->second);
  processes_.erase(p);
  guardian_.forget(pid);
}

void Server::program_ended(Process& p) {
  report(p);
  if (p.space.use_count() == 1) ended_.push_back(std::move(p.space));
  // Others that share its memory may be waiting for calls that it will not make any more.
  if (p.memory && p.memory->leave(p.slots)) {
    for (uint32_t slot : p.memory->take_waiting())
      __atomic_fetch_or(&control()->posted[slot / 64], uint64_t{1} << slot % 64, __ATOMIC_SEQ_CST);
  }
  for (uint32_t slot : p.slots) free_slot(slot);
  p.slots.clear();
  for (uint32_t slot = 1; slot < slots_.size(); slot++)  // threads that it did not come to create
    if (slots_[slot].is_reserved() && slots_[slot].pid == p.pid && slots_[slot].is_thread()) free_slot(slot);
}

// The counts of a program's threads, and its share of the statistics.
void Server::report(Process& p) {
  if (p.left_alone) return;
  take_faults();
  for (uint32_t slot : p.slots) collect(p, slot);
  collect_regions(p);
  const SpaceStats& s = p.space->stats();
  stats_.peak_code = std::max(stats_.peak_code, p.space->code_size());
  stats_.peak_counters = std::max<uint64_t>(stats_.peak_counters, p.space->counters() * 8);
  stats_.peak_table = std::max(stats_.peak_table, p.space->table_size());
  if (options_.on_program_end) options_.on_program_end(p.space->tool(), run_of(p));
  if (p.space.use_count() > 1) return;
  stats_.functions += s.functions;
  stats_.blocks += s.blocks;
  stats_.instructions += s.instructions;
  stats_.code_bytes += s.code_bytes;
  stats_.app_bytes += s.app_bytes;
  stats_.not_supported += s.not_supported;
  stats_.flushed_units += s.flushed_units;
  stats_.cache_flushes += s.cache_flushes;
  stats_.from_archive += s.from_archive;
  stats_.translate_ns += s.nanoseconds;
}

// A thread that came to the end of its parallel stack got a signal there.
void Server::look_for_overflow(const Process& p, uint32_t slot) {
  if (!p.space->tool().services().frames) return;
  uint64_t begin = Slots::address(slot), top = block(slot)->frames.top;
  uint32_t size = p.space->tool().inline_code()->frame_size();
  if (top <= begin + rt::frames_end - size) return;
  say("{}: more than {} calls inside each other are too many for a profile; the process was ended", p.run.program,
      (rt::frames_end - rt::frames_offset) / size);
  if (p.pid == main_pid_) failed_ = true;
}

// As far as it is known now.
const profile::LiveRun& Server::run_of(Process& p) const {
  std::span<const std::string> images = p.space->images();
  if (!p.perf_map) p.perf_map = process::open_perf_map(p.pid, p.own_pid, p.run.started);
  p.run.images.assign(images.begin(), images.end());
  p.run.perf_map = p.perf_map.get();
  p.run.ended = process::microseconds_now();
  return p.run;
}

namespace {

// What is not a hole in this part of a file.
std::vector<instrument::CellRange> written_cells(int file, uint64_t begin, uint32_t count) {
  auto cell_at = [&](off_t offset) {
    return static_cast<uint32_t>(std::clamp<int64_t>((offset - static_cast<off_t>(begin)) / 8, 0, count));
  };
  std::vector<instrument::CellRange> ranges;
  auto end = static_cast<off_t>(begin + uint64_t{count} * 8);
  for (auto at = static_cast<off_t>(begin); at < end;) {
    off_t data = lseek(file, at, SEEK_DATA);
    if (data < 0 && errno != ENXIO) return {{0, count}};  // it cannot be told
    if (data < 0 || data >= end) break;
    at = lseek(file, data, SEEK_HOLE);
    if (at < 0) return {{0, count}};
    ranges.push_back({cell_at(data), cell_at(at)});
  }
  return ranges;
}

}  // namespace

// The counters of one thread go to the tool.
void Server::collect(Process& p, uint32_t slot) {
  rt::ThreadBlock* tb = block(slot);
  stats_.misses += tb->misses;
  stats_.signals += tb->signals;
  look_for_overflow(p, slot);
  auto* cells = reinterpret_cast<const uint64_t*>(memory_of(slot) + rt::counters_offset);
  uint32_t count = std::min(p.space->counters(), rt::max_counters);  // (a function that had no room has ended the process)
  auto written = written_cells(slots_.memory().file.get(), slot * rt::block_stride + rt::counters_offset, count);
  std::vector<rt::OpenCall> open;
  if (p.space->names_functions()) open = open_calls(slot);
  p.space->tool().collect(
      {static_cast<uint32_t>(p.pid), static_cast<uint32_t>(slots_[slot].tid), {cells, count}, memory_of(slot), written, open});
}

// Of processes that share their memory, the last one tells.
void Server::collect_regions(Process& p) {
  if (!p.memory) return;
  auto shares = [&](const auto& other) { return &other.second != &p && other.second.memory == p.memory; };
  if (std::ranges::any_of(processes_, shares)) return;
  for (size_t i = 0; i < p.memory->region_files.size(); i++) {
    const auto& file = p.memory->region_files[i];
    auto has_it = [&](const auto& other) {
      return &other.second != &p && other.second.memory && other.second.memory->region_files[i] == file;
    };
    if (!file) continue;
    p.space->tool().collect_region(
        {static_cast<uint32_t>(p.pid), static_cast<uint32_t>(i), file->get(), std::ranges::none_of(processes_, has_it)});
  }
}

namespace {

// Does the thread have this thread block?
bool has_block(pid_t tid, uint32_t slot) {
  uint64_t address = Slots::address(slot), self = 0;
  return process::read(tid, address, std::as_writable_bytes(std::span(&self, 1))) == 8 && self == address;
}

// The child of a thread that has this block, and this id in its own namespace.
pid_t child_with_block(const Slot& parent, pid_t inner, uint32_t slot) {
  std::ifstream children(fmt::format("/proc/{}/task/{}/children", parent.pid, parent.tid));
  for (pid_t child; children >> child;)
    if (process::own_id(child) == inner && has_block(child, slot)) return child;
  return 0;
}

}  // namespace

namespace {
// May a process that has no seccomp filter find our files in /proc? Not where it has another root, or another user namespace.
bool may_find_us(pid_t pid) {
  auto is_same = [&](const char* what) {
    struct stat its{}, own{};
    return !stat(fmt::format("/proc/{}/{}", pid, what).c_str(), &its) &&
           !stat(fmt::format("/proc/self/{}", what).c_str(), &own) && its.st_dev == own.st_dev && its.st_ino == own.st_ino;
  };
  return is_same("root") && is_same("ns/user");
}
}  // namespace

// Of a child that has come. (Under a seccomp filter any call may be its last.)
void Server::copy_regions(Process& p) {
  auto regions = p.space->tool().services().regions;
  std::vector<instrument::ToolRegion> copied_ones;
  std::ranges::copy_if(regions, std::back_inserter(copied_ones), is_copied_by_weir);
  if (copied_ones.empty()) return;
  if (p.quiet || !may_find_us(p.pid))
    return say("{}: a child and its parent share {}: it may not open weir's files", p.run.program, names_of(copied_ones));
  if (auto copied = p.memory->copy_regions(*p.space); !copied) end_with_message(p, copied.error().what);
  guardian_is_old_ |= has_results();
}

// The target tells its own ids; they are believed only of a process that has our memory. In another pid namespace they are not ours, and are looked for.
bool Server::hello(uint32_t slot, const rt::HelloRequest& r) {
  const Slot& s = slots_[slot];
  if (!s.is_reserved()) return false;
  rt::ThreadBlock* tb = block(slot);
  auto pid = static_cast<pid_t>(r.pid), tid = static_cast<pid_t>(r.tid), own_pid = pid;
  bool is_thread = s.is_thread(), elsewhere = tb->elsewhere;  // (it may change there)
  if (is_thread) pid = s.pid;
  else if (!has_block(pid, slot) || process::own_id(pid) != pid) elsewhere = true;
  tb->elsewhere = elsewhere;
  if (elsewhere) {
    if (!is_thread) pid = child_with_block(s, pid, slot);
    std::error_code none;
    for (const auto& thread : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), none))
      if (process::own_id(atoi(thread.path().filename().c_str())) == tid) {
        tid = static_cast<pid_t>(atoi(thread.path().filename().c_str()));
        break;
      }
  }
  if (!pid || access(fmt::format("/proc/{}/task/{}", pid, tid).c_str(), F_OK)) return false;
  // The parent may have executed another program by now, or have parted: the space is the one that the child has mapped. Where it was
  // forked while the parent mapped its own, it has begun with that, and maps all of it.
  auto parent = processes_.find(s.pid);
  uint64_t id = 0;
  process::read(tid, rt::space_base + offsetof(rt::SpacePage, id), std::as_writable_bytes(std::span(&id, 1)));
  bool shares = s.shares_memory() && parent != processes_.end() && parent->second.space == s.space;
  bool is_parents = shares || (parent != processes_.end() && parent->second.space->id() == id);
  auto memory = shares ? parent->second.memory : s.memory;
  if (is_parents && !shares && parent->second.space != s.space) memory->mapped = 0;
  if (s.clone_flags & CLONE_VFORK)
    if (uint32_t waiting = slots_.of_thread(s.tid)) slots_[waiting].child = pid;
  Slot reserved = slots_.run(slot, pid, tid);
  stats_.threads++;
  auto own = processes_.find(pid);
  if (own == processes_.end()) {
    Process p;
    p.pid = pid;
    p.has_begun = true;
    p.pidfd = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    p.space = is_parents ? parent->second.space : reserved.space;
    p.run.pid = static_cast<uint32_t>(pid);
    p.run.program = process::program_name(pid);
    p.run.command = process::command_of(pid);
    p.run.started = process::microseconds_now();
    p.run.parent_pid = static_cast<uint32_t>(reserved.pid);
    p.own_pid = own_pid;
    p.first_slot = slot;
    p.memory = memory;
    memory->mapped = std::min(memory->mapped, p.space->pieces().size());  // (the id that it told may be wrong)
    if (!shares) copy_regions(p);
    p.quiet = tb->quiet;
    p.elsewhere = elsewhere;
    own = processes_.emplace(pid, std::move(p)).first;
    guardian_.watch(pid);
    stats_.processes++;
  }
  own->second.slots.push_back(slot);
  enroll(own->second, slot);
  return true;
}

// The thread makes its last system call. Its block is free when it is gone.
void Server::thread_ended(uint32_t slot) {
  Process* p = process_of(slot);
  if (!p) return;
  if (slot == p->first_slot) return;  // it holds the process' signal actions, and is collected with it
  take_faults();
  collect(*p, slot);
  if (options_.on_thread_end) options_.on_thread_end(p->space->tool(), run_of(*p));
  std::erase(p->slots, slot);
  slots_.end_thread(slot);
}

Process* Server::process_of(uint32_t slot) {
  auto p = processes_.find(slots_[slot].pid);
  return p == processes_.end() ? nullptr : &p->second;
}

// The parallel stack ends at a page that cannot be written to. (Under a seccomp filter any call may be the last.)
void Server::end_frames(Process& p, uint32_t slot) {
  std::vector<bool>& has_end = p.memory->has_end;
  if (has_end.size() <= slot) has_end.resize(slot + 1);
  if (!p.space->tool().services().frames || p.quiet || has_end[slot]) return;
  has_end[slot] = true;
  uint64_t end = Slots::address(slot) + rt::frames_end;
  p.calls.push_back({SYS_mprotect, {end, 4096, PROT_NONE}, {}, rt::Optional});
}

uint32_t Server::allocate_slot(pid_t pid, pid_t tid) {
  for (uint32_t slot : slots_.take_ended()) free_slot(slot);
  return slots_.reserve(pid, tid);
}

// Children of a thread who have not said a word.
size_t Server::count_silent_children(pid_t pid, pid_t tid) const {
  std::ifstream file(fmt::format("/proc/{}/task/{}/children", pid, tid));
  size_t children = 0;
  for (pid_t child; file >> child;) children += !processes_.contains(child);
  return children;
}

// A child that was killed before it said a word, or that was never made, keeps its slot, and a space with it. No more of a thread's
// slots can be waiting than it has children who have said nothing; the oldest go.
void Server::release_lost_children(pid_t pid, pid_t tid) {
  constexpr size_t unlikely = 4;
  std::vector<uint32_t> waiting;
  for (uint32_t slot = 1; slot < slots_.size(); slot++)
    if (slots_[slot].is_reserved() && slots_[slot].tid == tid && !slots_[slot].shares_memory()) waiting.push_back(slot);
  if (waiting.size() < unlikely) return;
  size_t children = count_silent_children(pid, tid);
  for (size_t i = 0; i + children < waiting.size(); i++) free_slot(waiting[i]);
}

// What the guardian would have to collect stays where it is until that has learnt that we have collected it.
void Server::free_slot(uint32_t slot) {
  constexpr size_t most_retained = 64;
  if (!has_results() || !guardian_.roster()[slot].serial) return slots_.free(slot);
  slots_.retain(slot);
  guardian_is_old_ |= slots_.retained() >= most_retained;
}

}  // namespace weir::engine
