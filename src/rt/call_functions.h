// The calls that rt/call_effects.inc does not tell in a line: each in a function, for both stages (rt/call_teller.h).
#pragma once

#include "rt/call_teller.h"

namespace weir::rt::calls {

// call_files.cc
CallFunction poll, select, pselect6, readv, writev, vmsplice, process_vm_readv, process_vm_writev, fcntl, epoll_ctl,
    utimensat;
CallFunction io_setup, io_submit, io_getevents, io_cancel, io_uring_setup, io_uring_enter, io_uring_register;
CallFunction mount, fsconfig, openat2, statmount, quotactl, quotactl_fd, sysfs, name_to_handle, open_by_handle, setxattrat,
    getxattrat;
CallFunction landlock_add_rule, lsm_get_self_attr, lsm_list_modules;
// call_sockets.cc
CallFunction connect, accept, sendto, recvfrom, sendmsg, recvmsg, sendmmsg, recvmmsg, getsockname, setsockopt, getsockopt;
// call_memory.cc
CallFunction mmap, change_mapping, brk, mremap, mincore, madvise, shmat, shmdt, map_shadow_stack, get_mempolicy, move_pages,
    process_madvise;
CallFunction shmctl, semctl, msgsnd, msgrcv, msgctl, mq_open, mq_notify, mq_getsetattr;
CallFunction futex, futex_wait, futex_waitv, futex_requeue;
// call_processes.cc
CallFunction sigaction, sigaltstack, clock_nanosleep, waitid, clone, clone3, capget, capset, sched_setattr, sched_getattr,
    rseq;
CallFunction arch_prctl, modify_ldt, prctl, seccomp, ptrace, kcmp, membarrier, syslog, reboot, kexec_load;
// call_keys.cc: keys, programs for the kernel, counters
CallFunction keyctl, bpf, perf_event_open;
// call_ioctl.cc
CallFunction ioctl;

void tell_siginfo(Teller& t, int i, bool signal_matters);
void tell_sigevent(Teller& t, int i);
void tell_timex(Teller& t, int i);
void tell_filter(Teller& t, int i, uint64_t program);  // a struct sock_fprog
void tell_sized_mask(Teller& t, int i);                // a pointer to a signal mask, and its size, in memory
void tell_nodes(Teller& t, int i, uint64_t count);     // bits of memory nodes

// The path `i` of a call with flags: with AT_EMPTY_PATH it may be null.
template <int i, int flags>
void path_at(Teller& t) {
  constexpr uint32_t AT_EMPTY_PATH = 0x1000;
  if (t.arg(i) || !(t.uint_arg(flags) & AT_EMPTY_PATH)) t.text(i, t.arg(i));
}
// The mode, behind the flags, counts where a file may be made.
template <int flags>
void open_mode(Teller& t) {
  constexpr uint32_t O_CREAT = 0100, O_TMPFILE = 020000000;
  if (!(t.uint_arg(flags) & (O_CREAT | O_TMPFILE))) t.takes(flags + 1);
}
// argv, and the environment behind it.
template <int i>
void execve(Teller& t) {
  for (int each = i; each <= i + 1; each++)
    if (t.arg(each)) t.texts(each, t.arg(each));
}
template <int i>
void siginfo_in(Teller& t) {
  constexpr uint64_t pidfd_send_signal = 424;
  bool is_pidfd = t.number() == pidfd_send_signal;
  if (t.arg(i) || !is_pidfd) tell_siginfo(t, i, is_pidfd);
}
template <int i>
void sigevent(Teller& t) {
  if (t.arg(i)) tell_sigevent(t, i);
}
template <int i>
void timex(Teller& t) {
  tell_timex(t, i);
}
template <int i>
void sized_mask(Teller& t) {
  if (t.arg(i)) tell_sized_mask(t, i);
}
template <int i, int count>
void nodes(Teller& t) {
  if (t.arg(i)) tell_nodes(t, i, t.arg(count));
}
// A structure whose first word is its size.
template <int i>
void sized_in(Teller& t) {
  uint64_t size = t.load32(t.arg(i));
  t.reads(i, t.arg(i), size > 4 ? size : 4);
}

}  // namespace weir::rt::calls
