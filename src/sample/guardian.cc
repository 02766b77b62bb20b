// When Weir is killed, the programs go on natively: the kernel closes Weir's events. Its guardian, a copy of it that waits for that day, gives
// them their signal action and memory back, and writes what was sampled.

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "sample/sampler.h"

namespace weir::sample {

// A new one knows what has happened since; the old one goes then.
void Sampler::renew_guardian() {
  constexpr auto pause = std::chrono::milliseconds(500);
  if (guardian_ && waitpid(guardian_, nullptr, WNOHANG) == guardian_) guardian_ = 0, guardian_is_old_ = true;
  auto now = std::chrono::steady_clock::now();
  if (!guardian_is_old_ || (guardian_ && now < guardian_made_ + pause)) return;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC)) return;
  Fd reads(ends[0]), writes(ends[1]);
  Fd event(eventfd(0, EFD_CLOEXEC));
  pid_t weir = getpid(), pid = fork();
  if (pid < 0) return;
  guardian_event_ = std::move(event);
  if (pid == 0) {
    writes = Fd();
    guardian_pipe_ = Fd();
    stand_by(std::move(reads), weir);
  }
  dismiss_guardian();
  guardian_ = pid;
  guardian_pipe_ = std::move(writes);
  guardian_made_ = now;
  guardian_is_old_ = false;
  for (uint32_t place : std::exchange(retired_, {})) shared_->free(place);
}

void Sampler::dismiss_guardian() {
  if (!guardian_) return;
  [[maybe_unused]] ssize_t n = write(guardian_pipe_.get(), "", 1);
  guardian_pipe_ = Fd();
  waitpid(std::exchange(guardian_, 0), nullptr, 0);
}

// A new guardian has our descriptors until it has run for the first time: what we have closed is still taken then.
void Sampler::wait_for_guardian() {
  constexpr int patience = 1000;  // ms
  pollfd apart{guardian_event_.get(), POLLIN, 0};
  if (guardian_) poll(&apart, 1, patience);
}

void Sampler::stand_by(Fd dismissed, pid_t weir) {
  setsid();
  prctl(PR_SET_NAME, "weir-guardian");
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  // Its descriptors must not keep the events alive.
  watch_ = {};
  images_->forget_thread();
  for (auto& [pid, p] : processes_) p.events.clear(), p.guards.clear(), p.entry = Fd();
  eventfd_write(guardian_event_.get(), 1);
  Fd process(static_cast<int>(syscall(SYS_pidfd_open, weir, 0)));
  char byte;
  ssize_t n;
  do n = read(dismissed.get(), &byte, 1);
  while (n < 0 && errno == EINTR);
  if (n == 1) _exit(0);
  // Its pipe is closed; when it is dead, all its events are.
  pollfd death{process.get(), POLLIN, 0};
  while (process && poll(&death, 1, -1) < 0) {}
  weir_ = weir;
  guardian_ = 0;
  is_cut_short_ = true;
  retired_.clear();  // those are ours to collect
  if (auto written = finish(); !written) say("{}", written.error().what);
  _exit(0);
}

}  // namespace weir::sample
