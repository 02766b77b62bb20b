// Calls on processes, signals and time for call_kernel_test.cc.

#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <mqueue.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>

#include "call_trial.h"

namespace weir::rt {
namespace {

using std::string;

const timespec moment{0, 1000}, second{1, 0};
const itimerval no_timer{};
const itimerspec no_setting{};

uint64_t child_that(void (*f)()) {
  pid_t parent = getpid(), child = fork();
  if (!child) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);  // it has ended before
    f();
    _exit(7);
  }
  return uint64_t(child);
}
uint64_t ended_child() {
  return child_that([] {});
}
uint64_t waiting_child() {
  return child_that([] { pause(); });
}
uint64_t traced_child() {
  uint64_t child = child_that([] {
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
  });
  waitpid(pid_t(child), nullptr, 0);
  return child;
}
// A signal handler that only interrupts, soon.
void interrupt_soon() {
  struct sigaction action{};
  action.sa_handler = [](int) {};
  sigaction(SIGALRM, &action, nullptr);
  itimerval soon{{0, 0}, {0, 20000}};
  setitimer(ITIMER_REAL, &soon, nullptr);
}
struct KernelAction {
  uint64_t handler, flags, restorer, mask;
};
uint64_t mapped(uint64_t size) {
  return reinterpret_cast<uint64_t>(mmap(nullptr, size, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}
sock_filter allow_all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
timer_t a_timer() {
  int timer = -1;
  syscall(SYS_timer_create, CLOCK_MONOTONIC, nullptr, &timer);
  return reinterpret_cast<timer_t>(int64_t(timer));
}
uint64_t number_of(timer_t timer) { return reinterpret_cast<uint64_t>(timer); }

}  // namespace

std::vector<Case> process_cases() {
  return {
      {SYS_rt_sigaction, "rt_sigaction",
       [](Trial& t) {
         uint64_t a = t.in(KernelAction{1, 0, 0, 0});
         t.call(SYS_rt_sigaction, SIGUSR1, a, t.out(32), 8);
       }},
      {SYS_rt_sigprocmask, "rt_sigprocmask",
       [](Trial& t) {
         uint64_t a = t.in(uint64_t{0});
         t.call(SYS_rt_sigprocmask, SIG_SETMASK, a, t.out(8), 8);
       }},
      {SYS_rt_sigpending, "rt_sigpending", [](Trial& t) { t.call(SYS_rt_sigpending, t.out(8), 8); }},
      {SYS_rt_sigpending, "rt_sigpending of half", [](Trial& t) { t.call(SYS_rt_sigpending, t.out(4), 4); }},
      {SYS_rt_sigtimedwait, "rt_sigtimedwait",
       [](Trial& t) {
         sigset_t set;
         sigemptyset(&set), sigaddset(&set, SIGUSR1);
         sigprocmask(SIG_BLOCK, &set, nullptr);
         raise(SIGUSR1);
         uint64_t mask = uint64_t{1} << (SIGUSR1 - 1), which = t.in(mask), info = t.out(128);
         t.call(SYS_rt_sigtimedwait, which, info, t.in(second), 8);
       }},
      {SYS_rt_sigqueueinfo, "rt_sigqueueinfo",
       [](Trial& t) {
         signal(SIGUSR1, SIG_IGN);
         siginfo_t info{};
         info.si_code = SI_QUEUE;
         t.call(SYS_rt_sigqueueinfo, uint64_t(getpid()), SIGUSR1, t.in(info));
       }},
      {SYS_rt_sigqueueinfo, "rt_sigqueueinfo of an unknown code",
       [](Trial& t) {
         signal(SIGUSR1, SIG_IGN);
         siginfo_t info{};
         info.si_code = -20;
         t.call(SYS_rt_sigqueueinfo, uint64_t(getpid()), SIGUSR1, t.in(info));
       }},
      {SYS_rt_tgsigqueueinfo, "rt_tgsigqueueinfo",
       [](Trial& t) {
         signal(SIGUSR1, SIG_IGN);
         siginfo_t info{};
         info.si_code = SI_QUEUE;
         t.call(SYS_rt_tgsigqueueinfo, uint64_t(getpid()), uint64_t(getpid()), SIGUSR1, t.in(info));
       }},
      {SYS_pidfd_send_signal, "pidfd_send_signal",
       [](Trial& t) {
         signal(SIGUSR1, SIG_IGN);
         siginfo_t info{};
         info.si_code = SI_QUEUE, info.si_signo = SIGUSR1;
         t.call(SYS_pidfd_send_signal, uint64_t(syscall(SYS_pidfd_open, getpid(), 0)), SIGUSR1, t.in(info), 0);
       }},
      {SYS_rt_sigsuspend, "rt_sigsuspend",
       [](Trial& t) {
         interrupt_soon();
         t.call(SYS_rt_sigsuspend, t.in(uint64_t{0}), 8);
       },
       -EINTR},
      {SYS_sigaltstack, "sigaltstack",
       [](Trial& t) {
         stack_t stack{};
         stack.ss_flags = SS_DISABLE;
         uint64_t a = t.in(stack), b = t.out(24);
         t.call(SYS_sigaltstack, a, b);
       }},
      {SYS_nanosleep, "nanosleep",
       [](Trial& t) {
         uint64_t a = t.in(moment), b = t.out(16);
         t.is_not_missed();
         t.call(SYS_nanosleep, a, b);
       }},
      {SYS_nanosleep, "nanosleep, interrupted",
       [](Trial& t) {
         interrupt_soon();
         uint64_t a = t.in(second);
         t.call(SYS_nanosleep, a, t.out(16));
       },
       -EINTR},
      {SYS_clock_nanosleep, "clock_nanosleep",
       [](Trial& t) {
         interrupt_soon();
         uint64_t a = t.in(second);
         t.call(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, a, t.out(16));
       },
       -EINTR},
      {SYS_clock_nanosleep, "clock_nanosleep until",
       [](Trial& t) {
         uint64_t a = t.in(moment);
         t.call(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, a, t.out(16));
       }},
      {SYS_getitimer, "getitimer", [](Trial& t) { t.call(SYS_getitimer, ITIMER_PROF, t.out(32)); }},
      {SYS_setitimer, "setitimer",
       [](Trial& t) {
         uint64_t a = t.in(no_timer);
         t.call(SYS_setitimer, ITIMER_PROF, a, t.out(32));
       }},
      {SYS_timer_create, "timer_create",
       [](Trial& t) {
         struct sigevent event{};
         event.sigev_notify = SIGEV_NONE;
         uint64_t e = t.in(event);
         t.call(SYS_timer_create, CLOCK_MONOTONIC, e, t.out(4));
       }},
      {SYS_timer_settime, "timer_settime",
       [](Trial& t) {
         uint64_t n = number_of(a_timer()), a = t.in(no_setting);
         t.null_is_other();
         t.call(SYS_timer_settime, n, 0, a, t.out(32));
       }},
      {SYS_timer_gettime, "timer_gettime", [](Trial& t) { t.call(SYS_timer_gettime, number_of(a_timer()), t.out(32)); }},
      {SYS_timerfd_settime, "timerfd_settime",
       [](Trial& t) {
         auto fd = syscall(SYS_timerfd_create, CLOCK_MONOTONIC, 0);
         uint64_t a = t.in(no_setting);
         t.call(SYS_timerfd_settime, uint64_t(fd), 0, a, t.out(32));
       }},
      {SYS_timerfd_gettime, "timerfd_gettime",
       [](Trial& t) { t.call(SYS_timerfd_gettime, uint64_t(syscall(SYS_timerfd_create, CLOCK_MONOTONIC, 0)), t.out(32)); }},
      {SYS_clock_gettime, "clock_gettime", [](Trial& t) { t.call(SYS_clock_gettime, CLOCK_MONOTONIC, t.out(16)); }},
      {SYS_clock_getres, "clock_getres", [](Trial& t) { t.call(SYS_clock_getres, CLOCK_MONOTONIC, t.out(16)); }},
      {SYS_clock_settime, "clock_settime",
       [](Trial& t) { t.call(SYS_clock_settime, CLOCK_REALTIME, t.in(timespec{0, -1})); }, -EINVAL},
      {SYS_clock_adjtime, "clock_adjtime", [](Trial& t) { t.call(SYS_clock_adjtime, CLOCK_REALTIME, t.in(timex{})); }},
      {SYS_adjtimex, "adjtimex", [](Trial& t) { t.call(SYS_adjtimex, t.in(timex{})); }},
      {SYS_gettimeofday, "gettimeofday",
       [](Trial& t) {
         uint64_t a = t.out(16);
         t.call(SYS_gettimeofday, a, t.out(8));
       }},
      {SYS_settimeofday, "settimeofday",
       [](Trial& t) {
         uint64_t a = t.in(timeval{0, -1});
         t.null_is_other();
         uint64_t b = t.in(uint64_t{0});
         t.is_not_missed();
         t.call(SYS_settimeofday, a, b);
       },
       -EINVAL},
      {SYS_time, "time", [](Trial& t) { t.call(SYS_time, t.out(8)); }},
      {SYS_times, "times", [](Trial& t) { t.call(SYS_times, t.out(32)); }},
      {SYS_wait4, "wait4",
       [](Trial& t) {
         uint64_t child = ended_child(), a = t.out(4);
         t.call(SYS_wait4, child, a, 0, t.out(144));
       }},
      {SYS_wait4, "wait4 for one that runs",
       [](Trial& t) {
         uint64_t child = waiting_child(), a = t.out(4);
         t.is_not_missed();
         uint64_t b = t.out(144);
         t.is_not_missed();
         t.call(SYS_wait4, child, a, WNOHANG, b);
       }},
      {SYS_waitid, "waitid",
       [](Trial& t) {
         uint64_t child = ended_child(), a = t.out(128);
         t.call(SYS_waitid, P_PID, child, a, WEXITED, t.out(144));
       }},
      {SYS_waitid, "waitid for one that runs",
       [](Trial& t) {
         uint64_t child = waiting_child(), a = t.out(128), b = t.out(144);
         t.is_not_missed();
         t.call(SYS_waitid, P_PID, child, a, WEXITED | WNOHANG, b);
       }},
      {SYS_waitid, "waitid for none",
       [](Trial& t) {
         uint64_t a = t.out(128), b = t.out(144);
         t.is_not_missed();
         t.call(SYS_waitid, P_ALL, 0, a, WEXITED, b);
       },
       -ECHILD},
      {SYS_uname, "uname", [](Trial& t) { t.call(SYS_uname, t.out(390)); }},
      {SYS_sethostname, "sethostname", [](Trial& t) { t.call(SYS_sethostname, t.in(string("weir")), 4); }},
      {SYS_setdomainname, "setdomainname", [](Trial& t) { t.call(SYS_setdomainname, t.in(string("weir")), 4); }},
      {SYS_getrlimit, "getrlimit", [](Trial& t) { t.call(SYS_getrlimit, 1, t.out(16)); }},
      {SYS_setrlimit, "setrlimit", [](Trial& t) { t.call(SYS_setrlimit, 4, t.in(std::vector<uint64_t>{0, 0})); }},
      {SYS_prlimit64, "prlimit64",
       [](Trial& t) {
         uint64_t a = t.in(std::vector<uint64_t>{0, 0});
         t.call(SYS_prlimit64, 0, 4, a, t.out(16));
       }},
      {SYS_getrusage, "getrusage", [](Trial& t) { t.call(SYS_getrusage, 0, t.out(144)); }},
      {SYS_sysinfo, "sysinfo", [](Trial& t) { t.call(SYS_sysinfo, t.out(112)); }},
      {SYS_getgroups, "getgroups",
       [](Trial& t) {
         bool has_three = !syscall(SYS_setgroups, 3, std::vector<unsigned>{1, 2, 3}.data());
         uint64_t p = t.out(12);
         if (!has_three) t.is_not_missed();
         t.call(SYS_getgroups, 3, p);
       }},
      {SYS_setgroups, "setgroups", [](Trial& t) { t.call(SYS_setgroups, 3, t.in(std::vector<unsigned>{1, 2, 3})); }},
      {SYS_getresuid, "getresuid",
       [](Trial& t) {
         uint64_t a = t.out(4), b = t.out(4);
         t.call(SYS_getresuid, a, b, t.out(4));
       }},
      {SYS_getresgid, "getresgid",
       [](Trial& t) {
         uint64_t a = t.out(4), b = t.out(4);
         t.call(SYS_getresgid, a, b, t.out(4));
       }},
      {SYS_getcpu, "getcpu",
       [](Trial& t) {
         uint64_t a = t.out(4);
         t.call(SYS_getcpu, a, t.out(4), 0);
       }},
      {SYS_capget, "capget",
       [](Trial& t) {
         uint64_t a = t.in(std::vector<uint32_t>{_LINUX_CAPABILITY_VERSION_3, 0});
         t.call(SYS_capget, a, t.out(24));
       }},
      {SYS_capget, "capget of the first version",
       [](Trial& t) {
         uint64_t a = t.in(std::vector<uint32_t>{_LINUX_CAPABILITY_VERSION_1, 0});
         t.call(SYS_capget, a, t.out(12));
       }},
      {SYS_capget, "capget, asking for the version",
       [](Trial& t) { t.call(SYS_capget, t.in(std::vector<uint32_t>{0, 0}), 0); }},
      {SYS_capset, "capset",
       [](Trial& t) {
         uint64_t a = t.in(std::vector<uint32_t>{_LINUX_CAPABILITY_VERSION_3, 0});
         t.call(SYS_capset, a, t.in(std::vector<uint32_t>(6)));
       }},
      {SYS_sched_setparam, "sched_setparam",
       [](Trial& t) {
         uint64_t p = t.in(0);
         t.null_is_other();
         t.call(SYS_sched_setparam, 0, p);
       }},
      {SYS_sched_getparam, "sched_getparam",
       [](Trial& t) {
         uint64_t p = t.out(4);
         t.null_is_other();
         t.call(SYS_sched_getparam, 0, p);
       }},
      {SYS_sched_setscheduler, "sched_setscheduler",
       [](Trial& t) {
         uint64_t p = t.in(0);
         t.null_is_other();
         t.call(SYS_sched_setscheduler, 0, 0, p);
       }},
      {SYS_sched_rr_get_interval, "sched_rr_get_interval",
       [](Trial& t) { t.call(SYS_sched_rr_get_interval, 0, t.out(16)); }},
      {SYS_sched_setaffinity, "sched_setaffinity",
       [](Trial& t) {
         uint64_t mask = 1, p = t.in(mask);
         t.call(SYS_sched_setaffinity, 0, 8, p);
       }},
      {SYS_sched_getaffinity, "sched_getaffinity",
       [](Trial& t) {
         uint64_t buffer[128];
         auto n = syscall(SYS_sched_getaffinity, 0, sizeof buffer, buffer);
         t.call(SYS_sched_getaffinity, 0, uint64_t(n), t.out(uint64_t(n)));
       }},
      {SYS_sched_setattr, "sched_setattr",
       [](Trial& t) {
         std::vector<uint32_t> attributes(12);
         attributes[0] = 48;
         uint64_t p = t.in(attributes);
         t.null_is_other();
         t.call(SYS_sched_setattr, 0, p, 0);
       }},
      {SYS_sched_setattr, "sched_setattr of a wrong size",
       [](Trial& t) {
         uint64_t p = t.in(std::vector<uint32_t>{5, 0x5a5a5a5a});
         t.null_is_other();
         t.call(SYS_sched_setattr, 0, p, 0);
       },
       -E2BIG},
      {SYS_sched_getattr, "sched_getattr",
       [](Trial& t) {
         uint64_t p = t.out(56);
         t.null_is_other();
         t.call(SYS_sched_getattr, 0, p, 56, 0);
       }},
      {SYS_sched_getattr, "sched_getattr into more",
       [](Trial& t) {
         uint64_t p = t.out(100);
         t.is_not_missed();
         t.call(SYS_sched_getattr, 0, p, 100, 0);
       }},
      {SYS_clone, "clone",
       [](Trial& t) {
         uint64_t a = t.out(4);
         t.is_not_missed();  // (the child is there by then)
         if (t.call(SYS_clone, SIGCHLD | CLONE_PARENT_SETTID, 0, a, 0, 0) == 0) _exit(0);
       }},
      {SYS_clone, "clone with a pidfd",
       [](Trial& t) {
         if (t.call(SYS_clone, SIGCHLD | CLONE_PIDFD, 0, t.out(4), 0, 0) == 0) _exit(0);
       }},
      {SYS_clone3, "clone3",
       [](Trial& t) {
         uint64_t parent = t.out(4);
         t.is_not_missed();
         clone_args args{};
         args.flags = CLONE_PIDFD | CLONE_PARENT_SETTID, args.exit_signal = SIGCHLD, args.parent_tid = parent,
         args.pidfd = t.out(4);
         if (t.call(SYS_clone3, t.in(args), sizeof args) == 0) _exit(0);
       }},
      {SYS_execve, "execve",
       [](Trial& t) {
         int fd = open("program", O_WRONLY | O_CREAT, 0755);
         if (write(fd, "no program at all", 17) < 0) abort();
         close(fd);
         uint64_t name = t.in(string("./program")), arg = t.in(string("arg")), more = t.in(string(300, 'x'));
         uint64_t var = t.in(string("A=b")), argv = t.in(std::vector<uint64_t>{arg, more, 0});
         t.call(SYS_execve, name, argv, t.in(std::vector<uint64_t>{var, 0}));
       },
       -ENOEXEC},
      {SYS_execveat, "execveat",
       [](Trial& t) {
         int fd = open("program", O_WRONLY | O_CREAT, 0755);
         if (write(fd, "no program at all", 17) < 0) abort();
         close(fd);
         uint64_t name = t.in(string("program")), arg = t.in(string("arg")), argv = t.in(std::vector<uint64_t>{arg, 0});
         t.call(SYS_execveat, uint64_t(AT_FDCWD), name, argv, t.in(std::vector<uint64_t>{0}), 0);
       },
       -ENOEXEC},
      {SYS_prctl, "prctl(PR_SET_NAME)", [](Trial& t) { t.call(SYS_prctl, PR_SET_NAME, t.in(string("name"))); }},
      {SYS_prctl, "prctl(PR_SET_NAME) of a long one",
       [](Trial& t) {
         uint64_t p = t.in(string(40, 'n'));
         t.call(SYS_prctl, PR_SET_NAME, p);
       }},
      {SYS_prctl, "prctl(PR_GET_NAME)", [](Trial& t) { t.call(SYS_prctl, PR_GET_NAME, t.out(16)); }},
      {SYS_prctl, "prctl(PR_GET_PDEATHSIG)", [](Trial& t) { t.call(SYS_prctl, PR_GET_PDEATHSIG, t.out(4)); }},
      {SYS_prctl, "prctl(PR_GET_TSC)", [](Trial& t) { t.call(SYS_prctl, PR_GET_TSC, t.out(4)); }},
      {SYS_prctl, "prctl(PR_GET_CHILD_SUBREAPER)", [](Trial& t) { t.call(SYS_prctl, PR_GET_CHILD_SUBREAPER, t.out(4)); }},
      {SYS_prctl, "prctl(PR_GET_TID_ADDRESS)", [](Trial& t) { t.call(SYS_prctl, PR_GET_TID_ADDRESS, t.out(8)); }},
      {SYS_prctl, "prctl(PR_SET_VMA_ANON_NAME)",
       [](Trial& t) {
         uint64_t name = t.in(string("mine"));
         t.call(SYS_prctl, PR_SET_VMA, 0, mapped(4096), 4096, name);
       },
       0, true},
      {SYS_prctl, "prctl(PR_SET_SECCOMP)",
       [](Trial& t) {
         prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
         struct {
           uint16_t length, hole[3];
           uint64_t filter;
         } program{1, {}, t.in(allow_all)};
         t.null_is_other();
         t.call(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, t.in(program));
       }},
      {SYS_prctl, "prctl(PR_GET_AUXV)",
       [](Trial& t) {
         uint64_t p = t.out(64);
         t.call(SYS_prctl, 0x41555856, p, 64, 0, 0);
       }},
      {SYS_prctl, "prctl(PR_SET_MM_MAP_SIZE)",
       [](Trial& t) { t.call(SYS_prctl, PR_SET_MM, PR_SET_MM_MAP_SIZE, t.out(4), 0, 0); }},
      {SYS_seccomp, "seccomp",
       [](Trial& t) {
         prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
         struct {
           uint16_t length, hole[3];
           uint64_t filter;
         } program{1, {}, t.in(allow_all)};
         t.null_is_other();
         t.call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, t.in(program));
       }},
      {SYS_seccomp, "seccomp(GET_ACTION_AVAIL)",
       [](Trial& t) { t.call(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, t.in(SECCOMP_RET_ALLOW)); }},
      {SYS_seccomp, "seccomp(GET_NOTIF_SIZES)",
       [](Trial& t) { t.call(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, t.out(6)); }},
      {SYS_arch_prctl, "arch_prctl(ARCH_GET_FS)", [](Trial& t) { t.call(SYS_arch_prctl, 0x1003, t.out(8)); }},
      {SYS_arch_prctl, "arch_prctl(ARCH_GET_GS)", [](Trial& t) { t.call(SYS_arch_prctl, 0x1004, t.out(8)); }},
      {SYS_arch_prctl, "arch_prctl(ARCH_GET_XCOMP_SUPP)", [](Trial& t) { t.call(SYS_arch_prctl, 0x1021, t.out(8)); }},
      {SYS_arch_prctl, "arch_prctl(ARCH_GET_XCOMP_PERM)", [](Trial& t) { t.call(SYS_arch_prctl, 0x1022, t.out(8)); }},
      {SYS_arch_prctl, "arch_prctl(ARCH_GET_UNTAG_MASK)", [](Trial& t) { t.call(SYS_arch_prctl, 0x4001, t.out(8)); }, 0,
       true},
      {SYS_modify_ldt, "modify_ldt that writes",
       [](Trial& t) { t.call(SYS_modify_ldt, 1, t.in(std::vector<uint32_t>{3, 0, 0, 0x28}), 16); }},
      {SYS_modify_ldt, "modify_ldt that reads",
       [](Trial& t) {
         uint32_t entry[] = {0, 0, 0, 0x28};
         syscall(SYS_modify_ldt, 1, entry, 16);
         t.call(SYS_modify_ldt, 0, t.out(8), 8);
       }},
      {SYS_ptrace, "ptrace(PTRACE_PEEKDATA)",
       [](Trial& t) {
         uint64_t c = traced_child();
         t.call(SYS_ptrace, PTRACE_PEEKDATA, c, reinterpret_cast<uint64_t>(&allow_all), t.out(8));
       }},
      {SYS_ptrace, "ptrace(PTRACE_PEEKUSER)",
       [](Trial& t) {
         uint64_t c = traced_child();
         t.call(SYS_ptrace, PTRACE_PEEKUSER, c, 0, t.out(8));
       }},
      {SYS_ptrace, "ptrace(PTRACE_GETREGS)",
       [](Trial& t) {
         uint64_t c = traced_child();
         t.call(SYS_ptrace, PTRACE_GETREGS, c, 0, t.out(216));
       }},
      {SYS_ptrace, "ptrace(PTRACE_SETREGS)",
       [](Trial& t) {
         uint64_t c = traced_child();
         user_regs_struct r;
         ptrace(PTRACE_GETREGS, c, 0, &r);
         t.call(SYS_ptrace, PTRACE_SETREGS, c, 0, t.in(r));
       }},
      {SYS_ptrace, "ptrace(PTRACE_GETFPREGS)",
       [](Trial& t) {
         uint64_t c = traced_child();
         t.call(SYS_ptrace, PTRACE_GETFPREGS, c, 0, t.out(512));
       }},
      {SYS_ptrace, "ptrace(PTRACE_GETEVENTMSG)",
       [](Trial& t) {
         uint64_t c = traced_child();
         t.call(SYS_ptrace, PTRACE_GETEVENTMSG, c, 0, t.out(8));
       }},
      {SYS_ptrace, "ptrace(PTRACE_GETSIGINFO)",
       [](Trial& t) {
         uint64_t c = traced_child();
         t.call(SYS_ptrace, PTRACE_GETSIGINFO, c, 0, t.out(128));
       }},
      {SYS_ptrace, "ptrace(PTRACE_SETSIGINFO)",
       [](Trial& t) {
         uint64_t c = traced_child();
         siginfo_t info{};
         t.call(SYS_ptrace, PTRACE_SETSIGINFO, c, 0, t.in(info));
       }},
      {SYS_ptrace, "ptrace(PTRACE_GETREGSET)",
       [](Trial& t) {
         uint64_t c = traced_child(), p = t.out(216);
         t.call(SYS_ptrace, PTRACE_GETREGSET, c, 1, t.in(std::vector<uint64_t>{p, 216}));
       }},
      {SYS_ptrace, "ptrace(PTRACE_GETSIGMASK)",
       [](Trial& t) {
         uint64_t c = traced_child();
         t.call(SYS_ptrace, PTRACE_GETSIGMASK, c, 8, t.out(8));
       }},
      {SYS_ptrace, "ptrace(PTRACE_SETSIGMASK)",
       [](Trial& t) {
         uint64_t c = traced_child();
         t.call(SYS_ptrace, PTRACE_SETSIGMASK, c, 8, t.in(uint64_t{0}));
       }},
      {SYS_ptrace, "ptrace(PTRACE_GET_SYSCALL_INFO)",
       [](Trial& t) {
         uint64_t c = traced_child();
         uint64_t p = t.out(24);
         t.has_holes();
         t.call(SYS_ptrace, 0x420e, c, 24, p);
       }},
      {SYS_ptrace, "ptrace(PTRACE_PEEKSIGINFO)",
       [](Trial& t) {
         uint64_t c = traced_child(), args = t.in(std::vector<uint64_t>{0, uint64_t{1} << 32}), p = t.out(128);
         kill(pid_t(c), SIGUSR1);
         t.is_not_missed();
         t.call(SYS_ptrace, 0x4209, c, args, p);
       }},
      {SYS_ptrace, "ptrace(PTRACE_ARCH_PRCTL)",
       [](Trial& t) {
         uint64_t c = traced_child();
         t.call(SYS_ptrace, PTRACE_ARCH_PRCTL, c, t.out(8), 0x1003);
       }},
      {SYS_ptrace, "ptrace(PTRACE_GET_RSEQ_CONFIGURATION)",
       [](Trial& t) {
         uint64_t c = traced_child();
         t.call(SYS_ptrace, 0x420f, c, 24, t.out(24));
       }},
      {SYS_process_vm_readv, "process_vm_readv",
       [](Trial& t) {
         uint64_t local = t.in(std::vector<uint64_t>{t.out(8), 8}),
                  remote = t.in(std::vector<uint64_t>{reinterpret_cast<uint64_t>(&moment), 8});
         t.call(SYS_process_vm_readv, uint64_t(getpid()), local, 1, remote, 1, 0);
       }},
      {SYS_process_vm_writev, "process_vm_writev",
       [](Trial& t) {
         uint64_t local = t.in(std::vector<uint64_t>{t.in(uint64_t{1}), 8}),
                  remote = t.in(std::vector<uint64_t>{mapped(4096), 8});
         t.call(SYS_process_vm_writev, uint64_t(getpid()), local, 1, remote, 1, 0);
       }},
      {SYS_process_madvise, "process_madvise",
       [](Trial& t) {
         uint64_t memory = mapped(4096);
         t.call(SYS_process_madvise, uint64_t(syscall(SYS_pidfd_open, getpid(), 0)),
                t.in(std::vector<uint64_t>{memory, 4096}), 1, MADV_COLD, 0);
       }},
      {SYS_kcmp, "kcmp", [](Trial& t) { t.call(SYS_kcmp, uint64_t(getpid()), uint64_t(getpid()), 1, 0, 0); }},
  };
}

}  // namespace weir::rt
