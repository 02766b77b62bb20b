// System calls and a few words of kernel ABI, for code without a libc.
#pragma once

#include "rt/abi.h"

namespace weir::rt {

inline int64_t sys(int64_t nr, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0, uint64_t d = 0, uint64_t e = 0,
                   uint64_t f = 0) {
  int64_t result;
  register uint64_t r10 asm("r10") = d;
  register uint64_t r8 asm("r8") = e;
  register uint64_t r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

inline bool is_error(int64_t result) { return result < 0 && result > -4096; }

template <class T>
uint64_t address(T* p) {
  return reinterpret_cast<uint64_t>(p);
}

enum Nr : int64_t {
  SYS_write = 1,
  SYS_close = 3,
  SYS_mmap = 9,
  SYS_mprotect = 10,
  SYS_munmap = 11,
  SYS_brk = 12,
  SYS_rt_sigaction = 13,
  SYS_rt_sigprocmask = 14,
  SYS_rt_sigreturn = 15,
  SYS_ioctl = 16,
  SYS_pread64 = 17,
  SYS_mremap = 25,
  SYS_madvise = 28,
  SYS_shmat = 30,
  SYS_shmctl = 31,
  SYS_getpid = 39,
  SYS_clone = 56,
  SYS_fork = 57,
  SYS_vfork = 58,
  SYS_execve = 59,
  SYS_exit = 60,
  SYS_kill = 62,
  SYS_getrlimit = 97,
  SYS_getppid = 110,
  SYS_shmdt = 67,
  SYS_rt_sigqueueinfo = 129,
  SYS_sigaltstack = 131,
  SYS_mlock = 149,
  SYS_munlock = 150,
  SYS_mlockall = 151,
  SYS_prctl = 157,
  SYS_arch_prctl = 158,
  SYS_setrlimit = 160,
  SYS_clock_gettime = 228,
  SYS_gettid = 186,
  SYS_futex = 202,
  SYS_restart_syscall = 219,
  SYS_exit_group = 231,
  SYS_tgkill = 234,
  SYS_rt_tgsigqueueinfo = 297,
  SYS_prlimit64 = 302,
  SYS_process_vm_readv = 310,
  SYS_process_vm_writev = 311,
  SYS_seccomp = 317,
  SYS_execveat = 322,
  SYS_pkey_mprotect = 329,
  SYS_rseq = 334,
  SYS_clone3 = 435,
};

constexpr int64_t ENOSYS = 38, EFAULT = 14, ESRCH = 3, EINVAL = 22, EAGAIN = 11, EEXIST = 17, ENOMEM = 12;
constexpr uint64_t all_signals = ~uint64_t{0};
constexpr uint64_t CLONE_VM = 0x100, CLONE_SIGHAND = 0x800, CLONE_VFORK = 0x4000, CLONE_THREAD = 0x10000;

constexpr int SIGILL = 4, SIGTRAP = 5, SIGBUS = 7, SIGFPE = 8, SIGSEGV = 11, SIGURG = 23, SIGSYS = 31;
constexpr uint64_t signal_bit(int sig) { return uint64_t{1} << (sig - 1); }
constexpr uint64_t SA_SIGINFO = 4, SA_NOCLDSTOP = 1, SA_NOCLDWAIT = 2, SA_RESTORER = 0x04000000, SA_ONSTACK = 0x08000000,
                   SA_RESTART = 0x10000000, SA_NODEFER = 0x40000000, SA_RESETHAND = 0x80000000;
constexpr uint64_t SIG_DFL = 0, SIG_IGN = 1;
constexpr uint64_t flag_tf = 0x100;

struct Timespec {
  int64_t seconds, nanoseconds;
};

// The head of the kernel's siginfo.
struct SigInfo {
  int32_t signo, error, code, pad;
  uint64_t addr;
  uint8_t rest[104];
};
static_assert(sizeof(SigInfo) == 128);

// The kernel's struct ucontext on x86-64; gregs in the kernel's order.
struct UContext {
  uint64_t flags, link;
  uint64_t stack_sp;
  int32_t stack_flags, pad;
  uint64_t stack_size;
  uint64_t r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, eflags;
  uint16_t cs, gs, fs, ss;
  uint64_t err, trapno, oldmask, cr2, fpstate, reserved[8];
  uint64_t sigmask;
};
static_assert(offsetof(UContext, rip) == 168 && offsetof(UContext, sigmask) == 296);

// copy.cc
extern "C" {
void* memcpy(void* to, const void* from, size_t n);
void* memset(void* to, int value, size_t n);
}

}  // namespace weir::rt
