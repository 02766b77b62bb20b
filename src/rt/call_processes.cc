// Calls on processes and threads: signals, clone, wait, capabilities, scheduling, prctl, ptrace.

#include "rt/call_functions.h"

namespace weir::rt::calls {

// handler 8, flags 8, restorer 8, mask 8
void sigaction(Teller& t) {
  constexpr uint64_t SA_RESTORER = 0x0400'0000;
  uint64_t at = t.arg(1);
  if (!at) return;
  t.reads(1, at, 16);
  t.before(t.load64(at + 8) & SA_RESTORER ? Use::Read : Use::Copied, 1, at + 16, 8);
  t.reads(1, at + 24, 8);
}

// address 8, flags 4, hole 4, size 8; what is disabled has neither
void sigaltstack(Teller& t) {
  constexpr uint32_t SS_DISABLE = 2;
  uint64_t at = t.arg(0);
  if (!at) return;
  Use place = t.load32(at + 8) & SS_DISABLE ? Use::Copied : Use::Read;
  t.before(place, 0, at, 8);
  t.reads(0, at + 8, 4);
  t.copies(0, at + 12, 4);
  t.before(place, 0, at + 16, 8);
}

// signal 4, error 4, code 4, hole 4, process 4, user 4, value 8, and more that no caller needs. The kernel takes 48 bytes; where the code
// is none of its own, it looks whether the rest is zero.
void tell_siginfo(Teller& t, int i, bool signal_matters) {
  constexpr int32_t lowest_known = -7, SI_ASYNCNL = -60;
  uint64_t at = t.arg(i);
  auto code = int32_t(t.load32(at + 8));
  t.before(signal_matters ? Use::Read : Use::Copied, i, at, 4);
  t.reads(i, at + 4, 8);
  t.copies(i, at + 12, 4);
  t.reads(i, at + 16, 16);
  t.copies(i, at + 32, 16);
  if (code < lowest_known && code != SI_ASYNCNL) t.reads(i, at + 48, 80);
}

// value 8, signal 4, kind 4, thread 4, and more that is not used
void tell_sigevent(Teller& t, int i) {
  constexpr uint32_t SIGEV_NONE = 1, SIGEV_THREAD_ID = 4;
  uint64_t at = t.arg(i);
  uint32_t kind = t.load32(at + 12);
  t.before(kind == SIGEV_NONE ? Use::Copied : Use::Read, i, at, 12);
  t.reads(i, at + 12, 4);
  t.before(kind & SIGEV_THREAD_ID ? Use::Read : Use::Copied, i, at + 16, 4);
  t.copies(i, at + 20, 44);
}

// The first word says which of the fields are looked at; all are written.
void tell_timex(Teller& t, int i) {
  struct Field {
    uint32_t modes;
    uint16_t offset, size;
  };
  constexpr uint32_t ADJ_OFFSET = 1, ADJ_FREQUENCY = 2, ADJ_MAXERROR = 4, ADJ_ESTERROR = 8, ADJ_STATUS = 0x10,
                     ADJ_TIMECONST = 0x20, ADJ_TAI = 0x80, ADJ_SETOFFSET = 0x100, ADJ_TICK = 0x4000;
  constexpr Field fields[] = {{ADJ_OFFSET, 8, 8},      {ADJ_FREQUENCY, 16, 8}, {ADJ_MAXERROR, 24, 8},
                              {ADJ_ESTERROR, 32, 8},   {ADJ_STATUS, 40, 4},    {ADJ_TIMECONST | ADJ_TAI, 48, 8},
                              {ADJ_SETOFFSET, 72, 16}, {ADJ_TICK, 88, 8}};
  constexpr uint64_t whole = 208;
  uint64_t at = t.arg(i), done = 4;
  uint32_t modes = t.load32(at);
  t.reads(i, at, done);
  for (const Field& f : fields) {
    if (!(modes & f.modes)) continue;
    t.copies(i, at + done, f.offset - done);
    t.reads(i, at + f.offset, f.size);
    done = uint64_t{f.offset} + f.size;
  }
  t.copies(i, at + done, whole - done);
  t.writes(i, at, whole);
}

void clock_nanosleep(Teller& t) {
  constexpr int TIMER_ABSTIME = 1;
  t.reads(2, t.arg(2), 16);
  if (t.int_arg(1) & TIMER_ABSTIME) t.takes(3);
  else if (t.arg(3)) t.writes(3, t.arg(3), 16, When::Interrupt);
}

// Of struct siginfo these words are written, even if there is no such child; the usage only if one was found, which the signal's number
// tells.
void waitid(Teller& t) {
  constexpr int WNOHANG = 1, SIGCHLD = 17;
  uint64_t info = t.arg(2), usage = t.arg(4);
  bool found = !t.has_failed() && (info ? t.is_after() && t.load32(info) == SIGCHLD : !(t.int_arg(3) & WNOHANG));
  if (info) {
    t.before(Use::MayWrite, 2, info, 28);
    t.after(Use::Written, 2, info, 12, When::Always);
    t.after(Use::Written, 2, info + 16, 12, When::Always);
  }
  if (!usage) return;
  t.before(Use::MayWrite, 4, usage, 144);
  if (found) t.after(Use::Written, 4, usage, 144);
  else if (t.is_after() && !t.has_failed() && !info) t.unknown(4, usage, 144);
}

namespace {
constexpr uint64_t CLONE_PIDFD = 0x1000, CLONE_PARENT_SETTID = 0x10'0000, CLONE_CHILD_CLEARTID = 0x20'0000,
                   CLONE_CHILD_SETTID = 0x100'0000, CLONE_SETTLS = 0x8'0000, CLONE_VM = 0x100;
// A child writes its own number into its own memory: which is the parent's, too, where they share it.
void tell_child(Teller& t, int i, uint64_t flags, uint64_t child, uint64_t parent) {
  bool in_child = t.is_after() && !t.has_failed() && !t.result();
  if (flags & CLONE_PARENT_SETTID) {
    t.before(Use::MayWrite, i, parent, 4);
    if (!in_child || (flags & CLONE_VM)) t.after(Use::Written, i, parent, 4);
  }
  if (flags & CLONE_CHILD_SETTID) {
    t.before(Use::MayWrite, i, child, 4);
    if (in_child) t.after(Use::Written, i, child, 4);
    else if (flags & CLONE_VM) t.later(i, child, 4);
  }
  if ((flags & CLONE_CHILD_CLEARTID) && (in_child || (flags & CLONE_VM))) t.later(i, child, 4);
}
}  // namespace

void clone(Teller& t) {
  uint64_t flags = t.arg(0);
  constexpr int first_two = 3, parent = 4, child = 8, tls = 16;
  t.takes_only(first_two | (flags & (CLONE_PARENT_SETTID | CLONE_PIDFD) ? parent : 0) |
               (flags & (CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID) ? child : 0) | (flags & CLONE_SETTLS ? tls : 0));
  tell_child(t, 3, flags & ~CLONE_PARENT_SETTID, t.arg(3), 0);
  tell_child(t, 2, flags & (CLONE_PARENT_SETTID | CLONE_VM), 0, t.arg(2));
  if (!(flags & CLONE_PIDFD)) return;
  t.before(Use::MayWrite, 2, t.arg(2), 4);
  if (t.result()) t.after(Use::Written, 2, t.arg(2), 4);
}

void clone3(Teller& t) {
  struct {
    uint64_t flags, pidfd, child, parent, signal, stack, stack_size, tls, ids, id_count, cgroup;
  } args{};
  t.reads(0, t.arg(0), t.arg(1));
  uint64_t size = t.arg(1) < sizeof args ? t.arg(1) : sizeof args;
  if (!t.load(t.arg(0), &args, size)) return;
  tell_child(t, 0, args.flags, args.child, args.parent);
  if (args.flags & CLONE_PIDFD) {
    t.before(Use::MayWrite, 0, args.pidfd, 4);
    if (t.result()) t.after(Use::Written, 0, args.pidfd, 4);
  }
  constexpr uint64_t most_ids = 32;
  if (args.id_count <= most_ids) t.reads(0, args.ids, args.id_count * 4);
}

namespace {
// version 4, process 4; data of 12 bytes, one or two of them by the version. Of an unknown version the kernel says which it wants.
uint64_t capability_data(Teller& t, bool& is_known) {
  uint32_t version = t.kept32(0, t.arg(0));
  is_known = version == 0x1998'0330 || version == 0x2007'1026 || version == 0x2008'0522;
  return version == 0x1998'0330 ? 12 : 24;
}
void tell_capability_head(Teller& t, bool is_known) {
  t.reads(0, t.arg(0), is_known ? 8 : 4);
  if (!is_known) t.writes(0, t.arg(0), 4, When::Always);
}
}  // namespace

void capget(Teller& t) {
  bool is_known;
  uint64_t size = capability_data(t, is_known);
  tell_capability_head(t, is_known);
  if (is_known && t.arg(1)) t.writes(1, t.arg(1), size);
}
void capset(Teller& t) {
  bool is_known;
  uint64_t size = capability_data(t, is_known);
  tell_capability_head(t, is_known);
  if (is_known) t.reads(1, t.arg(1), size);
}

// The structure begins with its size; of a wrong one the kernel says which it wants.
void sched_setattr(Teller& t) {
  constexpr uint32_t first = 48, page = 4096;
  constexpr int64_t E2BIG = 7;
  uint32_t size = t.kept32(0, t.arg(1));
  bool is_wrong = size && (size < first || size > page);
  t.reads(1, t.arg(1), is_wrong ? 4 : size ? size : first);
  t.before(Use::MayWrite, 1, t.arg(1), is_wrong ? 4 : 0);
  if (t.error() == E2BIG) t.after(Use::Written, 1, t.arg(1), 4, When::Always);
}

// Kernels differ in what they do with room that is larger than the structure.
void sched_getattr(Teller& t) {
  uint64_t room = t.uint_arg(2), written = t.is_after() ? t.load32(t.arg(1)) : 0;
  t.fills(1, t.arg(1), room, written);
  if (t.is_after() && !t.has_failed() && room > written) t.unknown(1, t.arg(1) + written, room - written);
}

void rseq(Teller& t) {
  constexpr int RSEQ_FLAG_UNREGISTER = 1;
  if (!(t.int_arg(2) & RSEQ_FLAG_UNREGISTER)) t.later(0, t.arg(0), t.uint_arg(1));
}

void arch_prctl(Teller& t) {
  switch (t.int_arg(0)) {
    case 0x1003:                                   // ARCH_GET_FS
    case 0x1004:                                   // ARCH_GET_GS
    case 0x1021:                                   // ARCH_GET_XCOMP_SUPP
    case 0x1022:                                   // ARCH_GET_XCOMP_PERM
    case 0x1024:                                   // ARCH_GET_XCOMP_GUEST_PERM
    case 0x4001:                                   // ARCH_GET_UNTAG_MASK
    case 0x4003:                                   // ARCH_GET_MAX_TAG_BITS
    case 0x5005: return t.writes(1, t.arg(1), 8);  // ARCH_SHSTK_STATUS
    case 0x1011: return t.takes(1);                // ARCH_GET_CPUID
    case 0x1001:                                   // ARCH_SET_GS
    case 0x1002:                                   // ARCH_SET_FS
    case 0x1012:                                   // ARCH_SET_CPUID
    case 0x1023:                                   // ARCH_REQ_XCOMP_PERM
    case 0x1025:                                   // ARCH_REQ_XCOMP_GUEST_PERM
    case 0x2001:                                   // ARCH_MAP_VDSO_X32
    case 0x2002:                                   // ARCH_MAP_VDSO_32
    case 0x2003:                                   // ARCH_MAP_VDSO_64
    case 0x4002:                                   // ARCH_ENABLE_TAGGED_ADDR
    case 0x4004:                                   // ARCH_FORCE_TAGGED_SVA
    case 0x5001:                                   // ARCH_SHSTK_ENABLE
    case 0x5002:                                   // ARCH_SHSTK_DISABLE
    case 0x5003:                                   // ARCH_SHSTK_LOCK
    case 0x5004: return;                           // ARCH_SHSTK_UNLOCK
  }
  t.unknown(1, t.arg(1));
}

// (Its errors have 32 bits.)
void modify_ldt(Teller& t) {
  switch (t.int_arg(0)) {
    case 0:
    case 2: return t.fills(1, t.arg(1), t.arg(2), int32_t(t.result()) > 0 ? t.result() : 0);
    case 1:
    case 0x11: return t.reads(1, t.arg(1), 16);
  }
}

void seccomp(Teller& t) {
  switch (t.uint_arg(0)) {
    case 0: return t.takes(2);                   // SECCOMP_SET_MODE_STRICT
    case 1: return tell_filter(t, 2, t.arg(2));  // SECCOMP_SET_MODE_FILTER
    case 2: return t.reads(2, t.arg(2), 4);      // SECCOMP_GET_ACTION_AVAIL
    case 3: return t.writes(2, t.arg(2), 6);     // SECCOMP_GET_NOTIF_SIZES
  }
  t.unknown(2, t.arg(2));
}

namespace {
void tell_memory_map(Teller& t) {
  constexpr uint64_t PR_SET_MM_AUXV = 12, PR_SET_MM_MAP = 14, PR_SET_MM_MAP_SIZE = 15, auxv_offset = 88,
                     auxv_size_offset = 96;
  if (t.arg(1) == PR_SET_MM_AUXV) return t.reads(2, t.arg(2), t.arg(3));
  if (t.arg(1) == PR_SET_MM_MAP_SIZE) return t.writes(2, t.arg(2), 4);
  if (t.arg(1) != PR_SET_MM_MAP) return;
  t.reads(2, t.arg(2), t.arg(3));
  t.reads(2, t.load64(t.arg(2) + auxv_offset), t.load32(t.arg(2) + auxv_size_offset));
}
}  // namespace

void prctl(Teller& t) {
  enum : uint32_t {
    SetSignalOfDeath = 1,
    GetSignalOfDeath = 2,
    GetDumpable = 3,
    SetDumpable = 4,
    GetKeepCaps = 7,
    SetKeepCaps = 8,
    GetTiming = 13,
    SetTiming = 14,
    SetName = 15,
    GetName = 16,
    GetSeccomp = 21,
    SetSeccomp = 22,
    ReadBounding = 23,
    DropBounding = 24,
    GetTsc = 25,
    SetTsc = 26,
    GetSecureBits = 27,
    SetSecureBits = 28,
    SetTimerSlack = 29,
    GetTimerSlack = 30,
    DisableEvents = 31,
    EnableEvents = 32,
    MachineCheckKill = 33,
    MachineCheckGet = 34,
    SetMemory = 35,
    SetSubreaper = 36,
    GetSubreaper = 37,
    SetNoNewPrivileges = 38,
    GetNoNewPrivileges = 39,
    GetThreadAddress = 40,
    SetThp = 41,
    GetThp = 42,
    AmbientCaps = 47,
    GetSpeculation = 52,
    SetSpeculation = 53,
    SetFlusher = 57,
    GetFlusher = 58,
    Dispatch = 59,
    ScheduleCore = 62,
    SetMdwe = 65,
    GetMdwe = 66,
    SetMerge = 67,
    GetMerge = 68,
    TimerIds = 77,
    FutexHash = 78,
    SetPtracer = 0x5961'6d61,
    SetVma = 0x5356'4d41,
    GetAuxv = 0x4155'5856
  };
  uint64_t second = t.arg(1);
  switch (t.uint_arg(0)) {
    case GetSignalOfDeath:
    case GetTsc:
    case GetSubreaper: t.takes(2); return t.writes(1, second, 4);
    case GetThreadAddress: t.takes(2); return t.writes(1, second, 8);
    case SetName: t.takes(2); return t.text(1, second, 15);
    case GetName: t.takes(2); return t.writes(1, second, 16);
    case GetDumpable:
    case GetKeepCaps:
    case GetTiming:
    case GetSeccomp:
    case GetSecureBits:
    case GetTimerSlack:
    case DisableEvents:
    case EnableEvents: return t.takes(1);
    case SetSignalOfDeath:
    case SetDumpable:
    case SetKeepCaps:
    case SetTiming:
    case ReadBounding:
    case DropBounding:
    case SetTsc:
    case SetSecureBits:
    case SetTimerSlack:
    case SetSubreaper:
    case SetPtracer: return t.takes(2);
    case MachineCheckKill:
    case MachineCheckGet:
    case SetNoNewPrivileges:
    case GetNoNewPrivileges:
    case SetThp:
    case GetThp:
    case AmbientCaps:
    case GetSpeculation:
    case SetSpeculation:
    case SetFlusher:
    case GetFlusher:
    case SetMdwe:
    case GetMdwe:
    case SetMerge:
    case GetMerge:
    case TimerIds:
    case FutexHash: return;
    case SetSeccomp:
      if (second == 2) return t.takes(3), tell_filter(t, 2, t.arg(2));
      return t.takes(2);
    case SetMemory: return tell_memory_map(t);
    case Dispatch:
      if (second) t.later(4, t.arg(4), t.arg(4) ? 1 : 0);
      return;
    case ScheduleCore:
      if (!second) t.writes(4, t.arg(4), 8);
      return;
    case SetVma:
      if (t.arg(4)) t.text(4, t.arg(4), 80);
      return;
    case GetAuxv: return t.fills(1, second, t.arg(2), t.result());
  }
  t.unknown(1, second);
}

namespace {
enum : uint64_t {
  PTRACE_TRACEME = 0,
  PTRACE_PEEKTEXT = 1,
  PTRACE_PEEKDATA = 2,
  PTRACE_PEEKUSER = 3,
  PTRACE_GETREGS = 12,
  PTRACE_SETREGS = 13,
  PTRACE_GETFPREGS = 14,
  PTRACE_SETFPREGS = 15,
  PTRACE_GET_THREAD_AREA = 25,
  PTRACE_SET_THREAD_AREA = 26,
  PTRACE_ARCH_PRCTL = 30,
  PTRACE_SINGLEBLOCK = 33,
  PTRACE_SETOPTIONS = 0x4200,
  PTRACE_GETEVENTMSG,
  PTRACE_GETSIGINFO,
  PTRACE_SETSIGINFO,
  PTRACE_GETREGSET,
  PTRACE_SETREGSET,
  PTRACE_SEIZE,
  PTRACE_INTERRUPT,
  PTRACE_LISTEN,
  PTRACE_PEEKSIGINFO,
  PTRACE_GETSIGMASK,
  PTRACE_SETSIGMASK,
  PTRACE_SECCOMP_GET_FILTER,
  PTRACE_SECCOMP_GET_METADATA,
  PTRACE_GET_SYSCALL_INFO,
  PTRACE_GET_RSEQ_CONFIGURATION,
  PTRACE_SET_DISPATCH,
  PTRACE_GET_DISPATCH,
  PTRACE_SET_SYSCALL_INFO
};

// A vector is read, and what it leads to read or filled; its size is put in its place.
void tell_register_set(Teller& t, bool is_set) {
  uint64_t at = t.arg(3), begin = t.load64(at), room = t.load64(at + 8);
  if (t.is_before()) t.kept(0) = room;
  t.reads(3, at, 16);
  if (is_set) t.reads(3, begin, room);
  else t.fills(3, begin, t.kept(0), room);
  t.writes(3, at + 8, 8);
}

void tell_waiting_signals(Teller& t) {
  uint64_t at = t.arg(2);
  t.reads(2, at, 16);
  auto count = int32_t(t.load32(at + 12));
  if (count > 0) t.fills(3, t.arg(3), uint64_t(count) * 128, t.result() * 128);
}
}  // namespace

void ptrace(Teller& t) {
  uint64_t address = t.arg(2), data = t.arg(3);
  switch (t.arg(0)) {
    case PTRACE_TRACEME: return t.takes(1);
    case PTRACE_INTERRUPT:
    case PTRACE_LISTEN: return t.takes(2);
    case PTRACE_PEEKTEXT:
    case PTRACE_PEEKDATA:
    case PTRACE_PEEKUSER:
    case PTRACE_GETEVENTMSG: return t.writes(3, data, 8);
    case PTRACE_GETREGS: return t.writes(3, data, 216);
    case PTRACE_SETREGS: return t.reads(3, data, 216);
    case PTRACE_GETFPREGS: return t.writes(3, data, 512);
    case PTRACE_SETFPREGS: return t.reads(3, data, 512);
    case PTRACE_GET_THREAD_AREA: return t.writes(3, data, 16);
    case PTRACE_SET_THREAD_AREA: return t.reads(3, data, 16);
    case PTRACE_ARCH_PRCTL:
      if (data == 0x1003 || data == 0x1004) t.writes(2, address, 8);  // of fs, of gs
      else if (data != 0x1001 && data != 0x1002) t.unknown(2, address);
      return;
    case PTRACE_GETSIGINFO: return t.writes(3, data, 128);
    case PTRACE_SETSIGINFO: return t.reads(3, data, 48);
    case PTRACE_GETREGSET: return tell_register_set(t, false);
    case PTRACE_SETREGSET: return tell_register_set(t, true);
    case PTRACE_PEEKSIGINFO: return tell_waiting_signals(t);
    case PTRACE_GETSIGMASK: return t.writes(3, data, address);
    case PTRACE_SETSIGMASK:
    case PTRACE_SET_DISPATCH:
    case PTRACE_SET_SYSCALL_INFO: return t.reads(3, data, address);
    case PTRACE_GET_SYSCALL_INFO: return t.fills(3, data, address, t.result());
    case PTRACE_GET_RSEQ_CONFIGURATION:
    case PTRACE_GET_DISPATCH: return t.writes(3, data, address);
    case PTRACE_SECCOMP_GET_METADATA: t.reads(3, data, 8); return t.fills(3, data, address, t.result());
    case PTRACE_SECCOMP_GET_FILTER:
      if (!data) return;
      if (t.is_before()) t.unknown(3, data);
      else t.after(Use::Written, 3, data, t.result() * 8);
      return;
    case PTRACE_SETOPTIONS:
    case PTRACE_SEIZE: return;
  }
  if (t.arg(0) > PTRACE_SINGLEBLOCK) t.unknown(3, data);  // the others take values
}

void kcmp(Teller& t) {
  constexpr int KCMP_FILE = 0, KCMP_EPOLL_TFD = 7;
  if (t.int_arg(2) == KCMP_EPOLL_TFD) t.reads(4, t.arg(4), 12);
  else if (t.int_arg(2) != KCMP_FILE) t.takes(3);
}

void membarrier(Teller& t) {
  constexpr uint32_t MEMBARRIER_CMD_FLAG_CPU = 1;
  if (!(t.uint_arg(1) & MEMBARRIER_CMD_FLAG_CPU)) t.takes(2);
}

void syslog(Teller& t) {
  constexpr int SYSLOG_ACTION_READ = 2, SYSLOG_ACTION_READ_CLEAR = 4, SYSLOG_ACTION_CONSOLE_LEVEL = 8;
  int action = t.int_arg(0);
  if (action >= SYSLOG_ACTION_READ && action <= SYSLOG_ACTION_READ_CLEAR) {
    if (t.int_arg(2) > 0) t.fills(1, t.arg(1), uint64_t(t.int_arg(2)), t.result());
  } else if (action != SYSLOG_ACTION_CONSOLE_LEVEL) {
    t.takes(1);
  }
}

void reboot(Teller& t) {
  constexpr uint32_t LINUX_REBOOT_CMD_RESTART2 = 0xa1b2'c3d4;
  if (t.uint_arg(2) == LINUX_REBOOT_CMD_RESTART2) t.text(3, t.arg(3), 256);
  else t.takes(3);
}

// Each: buffer 8, its size 8, where it goes 8, how large that is 8.
void kexec_load(Teller& t) {
  constexpr uint64_t most = 16;
  for (uint64_t n = 0; n < t.arg(1) && t.arg(1) <= most; n++) {
    uint64_t at = t.arg(2) + n * 32;
    t.reads(2, at, 32);
    t.reads(2, t.load64(at), t.load64(at + 8));
  }
}

}  // namespace weir::rt::calls
