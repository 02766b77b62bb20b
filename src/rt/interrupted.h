// A system call that signals have interrupted: is it begun again, or does it end with EINTR?
//
// Of the signals that wait then, the first with a handler decides, by its SA_RESTART (signal(7)). Ours is synchronous, so the kernel takes it
// first, and it has SA_RESTART: the kernel sets the thread back in front of the `syscall`, and what comes behind finds no call to end. So our handler
// asks what waits behind it, and ends the call where that would have. It takes that signal itself, and hands it over, as another thread may take one
// that was sent to the process: then nothing has interrupted this call.
//
// Calls that no handler lets go on (poll, nanosleep, …) end with EINTR by ours, too. That is right where a signal of the program's waits that has a
// handler, or one has just been handled. Else (the signal that woke the thread was taken by another, or the process was stopped and continued) the
// call goes on natively: as restart_syscall(2), for those that have a limit of time. That call knows by itself whether there is something to go on
// with: rt_sigreturn(2) makes it end with EINTR. So a handler of the program's own is told from a sample, and so our handler must return in
// another way: rt_resume.
#pragma once

#include "rt/own_memory.h"
#include "rt/sys.h"

namespace weir::rt {

constexpr uint64_t syscall_size = 2;
constexpr int64_t EINTR = 4;

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
  if (!is_begun_again(c) || is_always_begun_again(c)) return;
  c.rax = static_cast<uint64_t>(-EINTR);
  c.rip += syscall_size;
}

template <class T>
bool read(uint64_t from, T& to) {
  return from && copy_from(static_cast<uint32_t>(sys(SYS_gettid)), from, &to, sizeof to);
}

// The number of the call: of one that the thread is behind, where the code tells it, as mov $number, %eax ; syscall.
[[gnu::cold]] inline uint64_t number_of(const UContext& c) {
  if (is_begun_again(c)) return c.rax;
  struct [[gnu::packed]] Call {
    uint8_t mov_eax;
    uint32_t number;
    uint16_t syscall;
  };
  Call call{};
  if (!read(c.rip - sizeof call, call)) return UINT64_MAX;
  return call.mov_eax == 0xb8 && call.syscall == 0x050f ? call.number : UINT64_MAX;
}

// Does the call go on with what the kernel has noted of it, when it was interrupted? (Such calls never end with EINTR for another reason.)
inline bool is_noted(uint64_t number, const UContext& c) {
  if (is_begun_again(c)) return number == SYS_restart_syscall;
  constexpr uint64_t poll = 7, nanosleep = 35, clock_nanosleep = 230, at_a_time = 1;
  constexpr uint64_t futex_command = 0x7f, wait = 0, wait_bitset = 9;
  switch (number) {
    case poll:
    case nanosleep: return true;
    case clock_nanosleep: return !(c.rsi & at_a_time);
    case SYS_futex: return ((c.rsi & futex_command) == wait || (c.rsi & futex_command) == wait_bitset) && c.r10;
    default: return false;
  }
}

inline bool is_behind_call(const UContext& c) { return c.rcx == c.rip && c.r11 == c.eflags; }

// Has a call been interrupted at which the thread stands?
inline bool is_interrupted(const UContext& c) {
  return is_begun_again(c) || (is_behind_call(c) && c.rax == static_cast<uint64_t>(-EINTR));
}

// The signals that were blocked while the call waited: some calls bring a mask of their own.
[[gnu::cold]] inline uint64_t blocked_in(uint64_t number, const UContext& c) {
  constexpr uint64_t rt_sigsuspend = 130, pselect6 = 270, ppoll = 271, epoll_pwait = 281, epoll_pwait2 = 441;
  uint64_t mask = c.sigmask, place = 0;
  if (is_begun_again(c)) return mask;
  switch (number) {
    case rt_sigsuspend: place = c.rdi; break;
    case pselect6: read(c.r9, place); break;
    case ppoll: place = c.r10; break;
    case epoll_pwait:
    case epoll_pwait2: place = c.r8; break;
  }
  read(place, mask);
  return mask;
}

// The first of the signals that wait and have a handler, with its action; 0: there is none.
[[gnu::cold]] inline int find_handler(uint64_t blocked, KernelSigaction& action) {
  constexpr int64_t SYS_rt_sigpending = 127;
  uint64_t waiting = 0;
  if (is_error(sys(SYS_rt_sigpending, address(&waiting), sizeof waiting))) return 0;
  for (waiting &= ~blocked; waiting; waiting &= waiting - 1) {
    int sig = __builtin_ctzll(waiting) + 1;
    if (is_error(sys(SYS_rt_sigaction, static_cast<uint64_t>(sig), 0, address(&action), sizeof waiting))) continue;
    if (action.handler != SIG_DFL && action.handler != SIG_IGN) return sig;
  }
  return 0;
}

// Takes a signal that waits; false: another thread has.
[[gnu::cold]] inline bool take(int sig, SigInfo& info) {
  constexpr int64_t SYS_rt_sigtimedwait = 128;
  const uint64_t set = signal_bit(sig);
  const Timespec at_once{0, 0};
  return sys(SYS_rt_sigtimedwait, address(&set), address(&info), address(&at_once), sizeof set) == sig;
}

}  // namespace weir::rt
