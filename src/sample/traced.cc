// Processes that others trace, or are about to: debuggers, strace. A process has one tracer, and each of our signals would stop it for that. So we
// let go of it, take our events away, and come back when it is traced no more.

#include "sample/sampler.h"

namespace weir::sample {

namespace {

bool is_traced(pid_t pid) {
  std::string tracer = process::status_word(pid, "TracerPid");
  return !tracer.empty() && tracer != "0" && tracer != std::to_string(getpid());
}

}  // namespace

// Not while it stands still for us.
bool Sampler::leave_alone(pid_t pid) {
  if (pid == held_) return false;
  left_alone_[pid].since = std::chrono::steady_clock::now();
  if (auto p = processes_.find(pid); p != processes_.end()) {
    end_events(p->second);
    p->second.is_left_alone = true;
  }
  return true;
}

// A process that we want.
bool Sampler::is_left_alone(pid_t pid) {
  if (is_traced(pid)) leave_alone(pid);
  auto at = left_alone_.find(pid);
  if (at != left_alone_.end()) at->second.is_wanted = true;
  return at != left_alone_.end();
}

void Sampler::come_back() {
  constexpr auto a_while = std::chrono::milliseconds(200);  // until its tracer has it
  auto now = std::chrono::steady_clock::now();
  for (auto [pid, left] : std::map(left_alone_)) {
    bool is_gone = !process::own_id(pid);
    if (!is_gone && (is_traced(pid) || now < left.since + a_while)) continue;
    left_alone_.erase(pid);
    auto p = processes_.find(pid);
    if (p != processes_.end()) {
      p->second.is_left_alone = false;
      if (has_ours(pid) && !p->second.is_executing) begin_events_again(p->second);
    } else if (!left.is_wanted) {
      continue;
    } else if (is_gone) {
      not_followed_++;
      why_not_followed_ = "another process traced it";
    } else if (has_ours(pid)) {
      follow(pid, process::parent_of(pid), now - a_while);
    } else {
      executed(pid);
    }
  }
}

}  // namespace weir::sample
