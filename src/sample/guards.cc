// System calls that must be seen before they are made, and what their threads ask of us then. See "Guards" in docs/design.md.

#include <elf.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/user.h>

#include <algorithm>
#include <climits>
#include <fstream>

#include "sample/sampler.h"

namespace weir::sample {

namespace {

bool is_guarded(const Process& p, uint64_t at) { return std::ranges::find(p.guarded, at) != p.guarded.end(); }

// The file that is mapped there.
std::string path_at(pid_t pid, uint64_t address) {
  for (const process::Region& r : process::regions(pid).value_or(std::vector<process::Region>()))
    if (r.range.contains(AppPc{address})) return r.path;
  return "";
}

// Is the thread inside the dynamic linker before its program begins? Later, the program calls it, too. What the linker begins with has the first
// word of the stack for its return address; what the program begins with takes that word anew.
bool is_before_entry(pid_t pid, const user_regs_struct& regs, uint64_t linker) {
  std::string path = path_at(pid, linker);
  if (!linker || path_at(pid, regs.rip) != path) return false;
  uint64_t begin = process::stat_of(pid).number(process::StatStartStack), word = 0;
  process::read(pid, begin - sizeof word, std::as_writable_bytes(std::span(&word, 1)));
  return regs.rsp == begin || path_at(pid, word) == path;
}

}  // namespace

// The sites that there are breakpoints for: those that programs need first, and others when it is known that they take the place of none.
std::vector<uint64_t> Sampler::sites_to_guard(const Process& p) const {
  constexpr size_t most = 4;  // that the processor has
  std::vector<uint64_t> chosen;
  for (const Site& site : p.code.sites())
    if (chosen.size() + bool(p.entry) < most && (is_needed(site.call) || p.code.is_complete())) chosen.push_back(site.at);
  return chosen;
}

// SIGTRAP ends a program that has no handler for it. So nobody may take ours away: where the program makes the system call for that, it is
// interrupted, and its wish is kept in the control block. And no event may be left when it executes another program.
void Sampler::guard(Process& p, const std::vector<pid_t>& tids) {
  std::vector<uint64_t> chosen = sites_to_guard(p);
  if (std::ranges::any_of(p.guarded, [&](uint64_t at) { return std::ranges::find(chosen, at) == chosen.end(); }))
    end_guards(p);
  for (uint64_t at : chosen) {
    if (is_guarded(p, at)) continue;
    std::vector<Fd> opened;
    for (pid_t tid : tids)
      if (auto fd = open_guard(p, tid, at)) opened.push_back(std::move(*fd));
    if (opened.size() < tids.size()) continue;
    shared_->control().processes[p.index].sites[p.guarded.size()] = at;
    for (const Fd& fd : opened) enable(fd);
    std::ranges::move(opened, std::back_inserter(p.guards));
    p.guarded.push_back(at);
  }
}

Result<Fd> Sampler::open_guard(const Process& p, pid_t tid, uint64_t at) {
  uint64_t word = rt::sample_word(rt::SampleKind::Guard, p.index);
  auto fd = open_breakpoint(tid, at, word);
  if (fd) return fd;
  wait_for_guardian();
  return open_breakpoint(tid, at, word);
}

void Sampler::end_guards(Process& p) {
  std::ranges::for_each(p.guards, close_event);
  p.guards.clear();
  p.guarded.clear();
}

bool Sampler::is_whole_guard(const Process& p) const {
  bool has[Site::Dispatch + 1] = {};
  for (const Site& s : p.code.sites()) {
    has[s.call] |= is_guarded(p, s.at);
    if (is_needed(s.call) && s.call != Site::Action && !is_guarded(p, s.at)) return false;
  }
  return p.code.is_complete() && has[Site::Action] && has[Site::Execute] && (has[Site::Any] || !p.code.needs_any()) &&
         shared_->control().processes[p.index].may_call;
}

// When a new program has its libraries, and has not begun, we look at it.
void Sampler::guard_entry(Process& p, const user_regs_struct& regs) {
  std::ifstream file(fmt::format("/proc/{}/auxv", p.pid), std::ios::binary);
  uint64_t entry = 0, linker = 0;
  for (Elf64_auxv_t a; file.read(reinterpret_cast<char*>(&a), sizeof a);) {
    if (a.a_type == AT_ENTRY) entry = a.a_un.a_val;
    if (a.a_type == AT_BASE) linker = a.a_un.a_val;
  }
  if (regs.rip != entry && !is_before_entry(p.pid, regs, linker)) return;  // we have come late
  auto fd = open_guard(p, p.pid, entry);
  if (!entry || !fd) return;
  shared_->control().processes[p.index].entry = entry;
  enable(*fd);
  p.entry = std::move(*fd);
}

// A program that has not come to its entry for so long was beyond it already, inside the linker that it uses when it runs, too.
void Sampler::forget_entry(Process& p) {
  constexpr auto long_time = std::chrono::milliseconds(200);
  if (!p.entry || p.is_executing || std::chrono::steady_clock::now() < p.entered + long_time) return;
  close_event(p.entry);
  shared_->control().processes[p.index].entry = 0;
  if (p.is_blind) begin_events_again(p);
}

// A program waits for us to know its code: before it begins (where it will stop at its entry, the linker is enough), and at its entry, when its libraries are there. Not for long:
// what is not known by then is found out while it runs. (Time that our thread has waited for a processor does not count, up to a second.)
bool Sampler::has_waited(Process& p) {
  constexpr auto most = std::chrono::milliseconds(5), most_of_all = std::chrono::milliseconds(1000);
  auto now = std::chrono::steady_clock::now();
  if (!p.waits_since) p.waits_since = now, p.delay_before = images_->delay();
  auto waited = now - *p.waits_since;
  bool is_known = p.entry ? p.code.has_linker() : p.code.is_ready();
  bool is_over =
      is_known || waited >= most_of_all || (waited >= most && waited - (images_->delay() - p.delay_before) >= most);
  if (is_over) p.waits_since.reset();
  return is_over;
}

bool Sampler::is_ready_to_run(Process& p) {
  if (!p.waits_since) {
    p.waits_since = std::chrono::steady_clock::now(), p.delay_before = images_->delay();  // to look at all takes time, too
    close_event(p.entry);
    shared_->control().processes[p.index].entry =
        0;  // while it asked, it waited: a signal for that finds it there once more
    p.program.command = process::command_of(p.pid);  // (it was not all there yet, perhaps)
    p.code.look(p.pid, p.index, *shared_, *images_);
  }
  return has_waited(p);
}

void Sampler::wait_for_code(Process& p) {
  while (!has_waited(p)) {
    usleep(100);
    p.code.renew(p.index, *shared_);
  }
}

// Code of the process was mapped, or is known better now.
void Sampler::code_changed(Process& p) {
  guardian_is_old_ = true;
  if (!by_perf_ || p.is_executing || p.is_left_alone || p.waits_since) return;
  if (p.events.empty()) return begin_late_events(p);
  guard(p, threads_of(p.pid));
  if (p.is_blind && is_whole_guard(p)) begin_events_again(p);
}

// Of a program that has run without guards.
void Sampler::begin_late_events(Process& p) {
  if (!by_perf_ || !p.has_ours || p.is_executing || p.is_left_alone || p.waits_since || !p.events.empty()) return;
  if (!p.code.has_library()) return;
  auto begun = begin_stopped(p);
  p.why_unsampled = begun ? "" : "it was not sampled: its code was not known when it began, and later " + begun.error().what;
}

void Sampler::take_news() {
  if (!images_->take_news()) return;
  for (auto& [pid, p] : processes_)
    if (p.has_ours && (p.code.renew(p.index, *shared_) || p.events.empty())) code_changed(p);
}

// A thread waits for us: see rt::Ask.
void Sampler::answer(Process& p) {
  rt::SampledProcess& told = shared_->control().processes[p.index];
  uint32_t asked = __atomic_load_n(&told.asked, __ATOMIC_ACQUIRE);
  if (asked == told.answered) return;
  switch (told.ask) {
    case rt::Ask::Look:
      if (!is_ready_to_run(p)) return;
      told.runs_bare = !p.code.has_library();
      p.why_unsampled = told.runs_bare ? "it was not sampled: its code was not known in time" : "";
      if (told.runs_bare) end_events(p);
      else begin_events_again(p);
      break;
    case rt::Ask::Go:
      p.is_executing = false;
      p.code.look(p.pid, p.index, *shared_, *images_);
      begin_events_again(p);
      break;
    case rt::Ask::Stop:
      p.is_executing = true;
      end_events(p);
      break;
    case rt::Ask::Trace:
      if (told.sees_weir && !leave_alone(static_cast<pid_t>(told.subject))) return;
      break;
    default: break;
  }
  __atomic_store_n(&told.answered, asked, __ATOMIC_RELEASE);
  constexpr int everyone = INT_MAX;
  syscall(SYS_futex, &told.answered, FUTEX_WAKE, everyone, nullptr, nullptr, 0);
}

}  // namespace weir::sample
