// A system call that signals have interrupted: is it begun again, or does it end with EINTR?
//
// Of the signals that wait then, the first with a handler decides, by its SA_RESTART (signal(7)). Ours is synchronous, so the kernel takes it
// first, and it has SA_RESTART: the kernel sets the thread back in front of the `syscall`, and what comes behind finds no call to end. So our handler
// asks what waits behind it, and ends the call where that would have.
//
// Calls that no handler lets go on (poll, nanosleep, …) end with EINTR by ours, too, which is right where another signal interrupted them: ours never
// does, as it is sent when a thread is on its way out of the kernel.
#pragma once

#include "rt/sys.h"

namespace weir::rt {

constexpr uint64_t syscall_size = 2;

// Is the thread in front of a call that it has been in? The instruction has left the address behind itself in rcx, and the flags in r11.
inline bool is_begun_again(const UContext& c) { return c.rcx == c.rip + syscall_size && c.r11 == c.eflags; }

// No signal ends these: they are begun again in any case (ERESTARTNOINTR).
inline bool is_always_begun_again(const UContext& c) {
  constexpr uint64_t ptrace = 101, futex_command = 0x7f, lock_pi = 6, wait_requeue_pi = 11, lock_pi2 = 13;
  uint64_t futex = c.rsi & futex_command;
  switch (c.rax) {
    case SYS_clone:
    case SYS_clone3:
    case SYS_fork:
    case SYS_vfork:
    case SYS_execve:
    case SYS_execveat:
    case ptrace: return true;
    case SYS_futex: return futex == lock_pi || futex == wait_requeue_pi || futex == lock_pi2;
    default: return false;
  }
}

inline void end_interrupted(UContext& c) {
  constexpr int64_t EINTR = 4;
  if (!is_begun_again(c) || is_always_begun_again(c)) return;
  c.rax = static_cast<uint64_t>(-EINTR);
  c.rip += syscall_size;
}

// `ours`: a set of signals that do not count.
[[gnu::cold]] inline void end_if_another_would(UContext& c, uint64_t ours) {
  constexpr int64_t SYS_rt_sigpending = 127;
  uint64_t waiting = 0;
  if (is_error(sys(SYS_rt_sigpending, address(&waiting), sizeof waiting))) return;
  for (waiting &= ~c.sigmask & ~ours; waiting; waiting &= waiting - 1) {
    KernelSigaction action{};
    auto sig = static_cast<uint64_t>(__builtin_ctzll(waiting)) + 1;
    if (is_error(sys(SYS_rt_sigaction, sig, 0, address(&action), sizeof waiting))) continue;
    if (action.handler == SIG_DFL || action.handler == SIG_IGN) continue;
    if (!(action.flags & SA_RESTART)) end_interrupted(c);
    return;
  }
}

}  // namespace weir::rt
