// The sampler's handler. See rt/sample.h.

#include "rt/sample.h"

#include "rt/dispatched.h"
#include "rt/frame_stack.h"
#include "rt/interrupted.h"
#include "rt/offsets.h"
#include "rt/sys.h"

namespace weir::rt {

static_assert(SAMPLER_VERSION == sampler_version);

extern "C" [[noreturn]] void rt_hand_over(int sig, SigInfo* info, UContext* context, uint64_t handler);
extern "C" [[noreturn, gnu::visibility("hidden")]] void rt_resume(const UContext* context, uint64_t fpstate,
                                                                  uint64_t features);
extern "C" [[gnu::visibility("hidden")]] char rt_resume_end[];
extern "C" void rt_call_on(uint64_t stack, void (*function)(void*), void* argument);

namespace {

SampleControl& control() { return *reinterpret_cast<SampleControl*>(sample_slots_base); }
SampleSlot* slot_at(uint32_t place) {
  return reinterpret_cast<SampleSlot*>(sample_slots_base + place * sample_slot_stride);
}

// What the kernel says of a signal.
constexpr int SI_TIMER = -2, TRAP_PERF = 6;
constexpr uint32_t TRAP_PERF_FLAG_ASYNC = 1;
struct PerfInfo {  // of SigInfo, from `addr` on
  uint64_t addr, data;
  uint32_t type, flags;
};
struct TimerInfo {
  int32_t timer, overrun;
  uint64_t value;
};
const PerfInfo& perf_of(const SigInfo& i) { return *reinterpret_cast<const PerfInfo*>(&i.addr); }
const TimerInfo& timer_of(const SigInfo& i) { return *reinterpret_cast<const TimerInfo*>(&i.addr); }

// The word of sample_word(), or 0: the signal is the program's own.
uint64_t word_of(const SigInfo& info) {
  uint64_t word = info.code == TRAP_PERF ? perf_of(info).data : info.code == SI_TIMER ? timer_of(info).value : 0;
  return is_sample_word(word) && process_of(word) < max_sample_processes ? word : 0;
}

struct Vector {
  uint64_t base, size;
};
}  // namespace
bool copy_from(uint32_t tid, uint64_t address, void* to, uint64_t size) {
  Vector local{rt::address(to), size}, remote{address, size};
  return sys(SYS_process_vm_readv, tid, rt::address(&local), 1, rt::address(&remote), 1) == static_cast<int64_t>(size);
}
namespace {
bool copy_to(uint32_t tid, uint64_t address, const void* from, uint64_t size) {
  Vector local{rt::address(from), size}, remote{address, size};
  return sys(SYS_process_vm_writev, tid, rt::address(&local), 1, rt::address(&remote), 1) == static_cast<int64_t>(size);
}

// ---- Slots ------------------------------------------------------------------------------------------------------------
uint64_t fs_base() {
  uint64_t fs = 0;
  if (control().has_fsbase) asm volatile("rdfsbase %0" : "=r"(fs));
  return fs;
}

// Without a system call, where the C library keeps it, and fs is the library's: the program may have set it to anything, and a process that
// was made without the library has its parent's. So each fs is looked at once.
[[gnu::cold]] uint32_t look_up_thread_id(SampledProcess& p, uint64_t fs, uint64_t& known) {
  constexpr uint32_t no_id = 1u << 31;
  if (!p.may_call) return no_id | static_cast<uint32_t>(fs >> 6);
  auto tid = static_cast<uint32_t>(sys(SYS_gettid));
  for (uint32_t at : tid_places) {
    if (p.tid_at && p.tid_at != at) continue;
    if (uint32_t word; fs && copy_from(tid, fs + at, &word, sizeof word) && word == tid) {
      p.tid_at = at;
      known = fs;
    }
  }
  return tid;
}

uint32_t thread_id(SampledProcess& p) {
  uint64_t fs = fs_base();
  uint64_t& known = p.known_fs[fs * 0x9E3779B97F4A7C15ull >> 56];
  return fs && known == fs ? *reinterpret_cast<const uint32_t*>(fs + p.tid_at) : look_up_thread_id(p, fs, known);
}

void* trace_memory(const SampleSlot& s) { return reinterpret_cast<void*>(address(&s) + trace_offset); }

[[gnu::cold]] void begin_slot(SampleSlot& s) {
  s.trace = Trace::make(trace_memory(s), trace_capacity);
  __atomic_store_n(&s.is_ready, 1, __ATOMIC_RELEASE);
}

// A key is looked for by its own thread; by Weir, too, while that sleeps.
SampleSlot* find_slot(uint64_t key) {
  constexpr uint32_t mask = max_sample_slots - 1, none = 0;
  uint64_t* keys = control().keys;
  for (int attempt = 0; attempt < 16; attempt++) {
    uint32_t vacant = none;
    uint32_t place = first_place(key);
    for (uint32_t i = 0; i < max_sample_slots; i++, place = (place + 1) & mask) {
      if (place == 0) continue;
      uint64_t found = __atomic_load_n(&keys[place], __ATOMIC_ACQUIRE);
      if (found == key) return slot_at(place);
      if (found == free_key || found == used_key) vacant = vacant == none ? place : vacant;
      if (found == free_key) break;
    }
    if (vacant == none) return nullptr;
    uint64_t was = __atomic_load_n(&keys[vacant], __ATOMIC_RELAXED);
    if ((was == free_key || was == used_key) &&
        __atomic_compare_exchange_n(&keys[vacant], &was, key, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      return slot_at(vacant);
  }
  return nullptr;
}

// ---- A sample ---------------------------------------------------------------------------------------------------------
[[gnu::cold]] void call_attention(SampledProcess& p) {
  p.unknown++;
  control().attention = 1;
}

// Many periods may pass in one OS call, and then there is one signal for all of them, when it ends. To ask the clock is a system call, too: that
// is made where Weir has seen that samples and time differ, and nowhere else.
uint64_t cpu_periods(const SampledProcess& p, SampleSlot& s, const UContext& at) {
  constexpr uint64_t CLOCK_THREAD_CPUTIME_ID = 3, second = 1'000'000'000;
  const uint64_t period = control().nanoseconds, lateness = period / 8;
  Timespec clock{};
  bool asks = p.is_off && p.may_call && (is_behind_call(at) || is_begun_again(at));
  if (!asks || is_error(sys(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, address(&clock)))) {
    s.last += period;
    return 1;
  }
  uint64_t now = static_cast<uint64_t>(clock.seconds) * second + static_cast<uint64_t>(clock.nanoseconds);
  uint64_t periods =
      now > s.last ? (now - s.last + lateness) / period : 0;  // (none: its time is in samples before, which came late)
  s.last += periods * period;
  return periods;
}

uint64_t told_of(SampledProcess& p, uint64_t periods) {
  __atomic_fetch_add(&p.periods, periods, __ATOMIC_RELAXED);
  return periods;
}

// Of wall time all that has passed.
uint64_t wall_periods(SampleSlot& s, uint64_t period) {
  uint64_t now = __builtin_ia32_rdtsc();
  uint64_t last = s.last;
  s.last = now;
  s.rest += last && now > last ? now - last : period;
  uint64_t periods = s.rest / period;
  s.rest -= periods * period;
  return periods;
}

// How many samples this one is.
uint64_t weight_of(SampledProcess& p, SampleSlot& s, const SigInfo& info, const UContext& at) {
  if (uint64_t period = control().period) return wall_periods(s, period);
  if (p.has_clock) return told_of(p, cpu_periods(p, s, at));
  return 1 + (info.code == SI_TIMER && timer_of(info).overrun > 0 ? static_cast<uint32_t>(timer_of(info).overrun) : 0);
}

// What a sample has taken, about, in nanoseconds: the program must get on. (The clock is not asked: it may be forbidden, see PR_SET_TSC.)
uint64_t cost_of(const Sample& sample, uint32_t copies, bool is_verified) {
  constexpr uint64_t compare = 2, unwind = 20, copy = 500;
  return compare * sample.depth + unwind * (sample.unwound + (is_verified ? sample.depth : 0)) + copy * copies;
}

void take_sample(SampledProcess& p, SampleSlot& s, const SigInfo& info, const UContext& at) {
  bool is_late = info.code == TRAP_PERF && perf_of(info).flags & TRAP_PERF_FLAG_ASYNC;
  if (is_late && at.rip == s.rip && at.rsp == s.rsp) {  // it came while this handler ran: time of ours
    if (p.has_clock) s.last += told_of(p, 1) * control().nanoseconds;
    return;
  }
  s.rip = at.rip, s.rsp = at.rsp;
  uint64_t weight = weight_of(p, s, info, at);
  if (!weight) return;
  Records records = records_of(s);
  if (s.skip || !records.has_room(trace_capacity)) {
    s.skip -= s.skip != 0, s.lost += weight;
    return;
  }
  if (is_late) s.late += weight;
  static constexpr Code nothing{};
  uint64_t published = __atomic_load_n(&p.code, __ATOMIC_ACQUIRE);
  const Code& code = published ? *reinterpret_cast<const Code*>(published) : nothing;
  KnownStack stack{};
  if (__atomic_load_n(&s.stack.high, __ATOMIC_ACQUIRE)) stack = s.stack;
  else if (s.wanted != at.rsp) s.fs = fs_base(), s.wanted = at.rsp, call_attention(p);
  OwnMemory memory(stack, at.rsp, p.may_call ? s.tid : 0);
  Stack own{stack.limit, stack.high};
  State top{at.rip, at.rsp, at.rbp, true, reinterpret_cast<const SavedRegisters*>(&at.r8)};
  const Options options = control().options;
  Sample sample = restore(s.trace, code, own, top, options, memory, weight);
  records.put(sample, at.rip, weight);
  if (sample.end == Stop::NoCode) call_attention(p);
  if (control().verify) {
    auto difference = static_cast<uint32_t>(verify(s.trace, sample, code, own, top, options, memory));
    s.differences[difference < difference_kinds ? difference : 0]++;
  }
  uint64_t rest = sample.end == Stop::TooDeep ? 4 : 1;  // the program's parts of the time for one that is ours
  if (uint64_t period = control().nanoseconds) s.skip = rest * cost_of(sample, memory.copies(), control().verify) / period;
}

// What the sample will read first, all at the same time: the program has driven it out of the caches.
void expect(const SampleSlot& s, const UContext& at) {
  constexpr uint64_t line = 64, end = offsetof(SampleSlot, trace) + offsetof(Trace, known) + offsetof(Known, calls);
  for (uint64_t i = line; i < end; i += line) __builtin_prefetch(reinterpret_cast<const char*>(&s) + i);
  __builtin_prefetch(Trace::rules_in(trace_memory(s), trace_capacity) + known_place(at.rip));
}

struct Work {
  SampledProcess& process;
  SampleSlot& slot;
  const SigInfo& info;
  const UContext& context;
};

void count(SampledProcess& p, uint64_t word, const SigInfo& info, const UContext& context) {
  bool is_timed = control().is_timed;
  uint64_t begin = is_timed ? __builtin_ia32_rdtsc() : 0;
  uint32_t tid = thread_id(p);
  SampleSlot* slot = find_slot(sample_key(process_of(word), tid));
  if (!slot || __atomic_exchange_n(&slot->busy, 1, __ATOMIC_ACQUIRE)) {
    __atomic_fetch_add(&p.lost, 1, __ATOMIC_RELAXED);
    return;
  }
  expect(*slot, context);
  Work work{p, *slot, info, context};
  slot->process = process_of(word), slot->tid = tid;
  rt_call_on(
      address(slot) + handler_stack,
      [](void* argument) {
        auto& w = *static_cast<Work*>(argument);
        if (!w.slot.is_ready) begin_slot(w.slot);
        take_sample(w.process, w.slot, w.info, w.context);
      },
      &work);
  if (is_timed) slot->trace.counts.timed++, slot->trace.counts.ticks += __builtin_ia32_rdtsc() - begin;
  __atomic_store_n(&slot->busy, 0, __ATOMIC_RELEASE);
}

// The program may have given signals a stack that the kernel's frame alone just fits on.
bool has_room(const UContext& c) {
  constexpr uint64_t enough = 512;
  uint64_t here = address(__builtin_frame_address(0)), from_begin = here - c.stack_sp;
  return from_begin >= c.stack_size || from_begin >= enough;
}

// ---- The program's own signals ------------------------------------------------------------------------------------------
[[noreturn]] void end_by(int sig, const SigInfo& info) {
  KernelSigaction by_default{};
  sys(SYS_rt_sigaction, static_cast<uint64_t>(sig), address(&by_default), 0, 8);
  uint64_t none = 0;
  auto pid = static_cast<uint64_t>(sys(SYS_getpid)), tid = static_cast<uint64_t>(sys(SYS_gettid));
  if (is_error(sys(SYS_rt_tgsigqueueinfo, pid, tid, static_cast<uint64_t>(sig), address(&info))))
    sys(SYS_tgkill, pid, tid, static_cast<uint64_t>(sig));
  for (;;) sys(SYS_rt_sigprocmask, 2, address(&none), 0, 8);
}

// Of a child that Weir has not seen yet: its parent's, whose actions it has.
SampledProcess& own_process() {
  constexpr int64_t calls[] = {SYS_getpid, SYS_getppid};
  for (int64_t call : calls) {
    auto pid = static_cast<uint32_t>(sys(call));
    for (uint32_t i = 0; i < control().process_count && i < max_sample_processes; i++)
      if (SampledProcess& p = control().processes[i]; p.pid == pid) return p;
  }
  return control().processes[0];
}

// In the frame that the kernel has made for us.
[[noreturn, gnu::cold]] void deliver(int sig, UContext* context, const KernelSigaction& action, uint64_t blocked,
                                     bool may_call, volatile uint8_t* selector) {
  context = on_right_stack(context, action.flags);
  if (action.flags & SA_RESTORER) *(reinterpret_cast<uint64_t*>(context) - 1) = action.restorer;
  uint64_t mask = blocked | action.mask | (action.flags & SA_NODEFER ? 0 : signal_bit(sig));
  if (may_call) sys(SYS_rt_sigprocmask, 2, address(&mask), 0, 8);
  if (selector) *selector = dispatch_block;
  rt_hand_over(sig, info_of(context), context, action.handler);
}

// As the kernel would have delivered it.
[[gnu::cold]] void hand_over(int sig, SigInfo* info, UContext* context) {
  uint64_t fs = fs_base();
  volatile uint8_t* selector = nullptr;
  for (uint32_t i = 0; i < control().process_count && i < max_sample_processes && !selector; i++)
    selector = blocking(control().processes[i], fs);
  if (selector) *selector = dispatch_allow;
  SampledProcess& p = own_process();
  KernelSigaction action = p.action;
  bool is_fault = info->code > 0;
  bool is_ignored = action.handler == SIG_IGN || (action.handler == SIG_DFL && sig == SIGURG);
  if (is_ignored && !is_fault) return selector ? return_blocking(*context, selector) : void();
  if (action.handler == SIG_DFL || action.handler == SIG_IGN) end_by(sig, *info);
  if (!(action.flags & SA_RESTART)) end_interrupted(*context);
  if (action.flags & SA_RESETHAND) p.action.handler = SIG_DFL;
  deliver(sig, context, action, context->sigmask, p.may_call, selector);
}

// ---- What Weir must know of in time --------------------------------------------------------------------------------------
// Weir sees it when it looks at perf's records; that a thread gets a name, its own, is one.
void ring_doorbell() {
  constexpr uint64_t PR_SET_NAME = 15, PR_GET_NAME = 16;
  char name[16];
  control().attention = 1;
  if (!is_error(sys(SYS_prctl, PR_GET_NAME, address(name)))) sys(SYS_prctl, PR_SET_NAME, address(name));
}

// Returns when Weir has answered, or is not there any more: its events are gone with it.
void ask(SampledProcess& p, Ask what, uint32_t subject = 0) {
  constexpr uint64_t FUTEX_WAIT = 0;
  constexpr int most_waits = 1500;
  const Timespec some_time{0, 20'000'000};
  for (int i = 0; i < most_waits && __atomic_exchange_n(&p.asking, 1, __ATOMIC_ACQUIRE); i++)
    sys(SYS_futex, address(&p.asking), FUTEX_WAIT, 1, address(&some_time));
  p.ask = what, p.subject = subject;
  uint32_t number = __atomic_add_fetch(&p.asked, 1, __ATOMIC_ACQ_REL);
  ring_doorbell();
  for (int i = 0; i < most_waits; i++) {
    uint32_t answered = __atomic_load_n(&p.answered, __ATOMIC_ACQUIRE);
    if (answered == number || (p.sees_weir && sys(SYS_kill, control().weir, 0) == -ESRCH)) break;
    sys(SYS_futex, address(&p.answered), FUTEX_WAIT, answered, address(&some_time));
  }
  __atomic_store_n(&p.asking, 0, __ATOMIC_RELEASE);
}

// The signal's action is the program's to set: what it believes to have set is kept here.
int64_t set_action(SampledProcess& p, const UContext& c) {
  KernelSigaction wanted, old = p.action;
  if (p.may_call) {
    auto tid = static_cast<uint32_t>(sys(SYS_gettid));
    if (c.rsi && !copy_from(tid, c.rsi, &wanted, sizeof wanted)) return -EFAULT;
    if (c.rdx && !copy_to(tid, c.rdx, &old, sizeof old)) return -EFAULT;
  } else {  // (a bad address is a fault then)
    if (c.rsi) wanted = *reinterpret_cast<const KernelSigaction*>(c.rsi);
    if (c.rdx) *reinterpret_cast<KernelSigaction*>(c.rdx) = old;
  }
  if (c.rsi) p.action = wanted;
  return 0;
}

void set_own_action(const KernelSigaction& action) { sys(SYS_rt_sigaction, control().signal, address(&action), 0, 8); }

// A signal that waits, or that an event sends from inside the call, would reach the new program, which has no handler for it. So there are no
// more events, and what waits is forgotten with an action that ignores it; which stays, if that is what the program wants.
int64_t execute(SampledProcess& p, const UContext& c) {
  constexpr uint64_t SIG_SETMASK = 2;
  ask(p, Ask::Stop);
  KernelSigaction ours;
  sys(SYS_rt_sigaction, control().signal, 0, address(&ours), 8);
  set_own_action({SIG_IGN, 0, 0, 0});
  if (p.action.handler != SIG_IGN) set_own_action(ours);
  sys(SYS_rt_sigprocmask, SIG_SETMASK, address(&c.sigmask), 0, 8);
  int64_t result = sys(static_cast<int64_t>(c.rax), c.rdi, c.rsi, c.rdx, c.r10, c.r8);
  sys(SYS_rt_sigprocmask, SIG_SETMASK, address(&all_signals), 0, 8);
  set_own_action(ours);
  ask(p, Ask::Go);
  return result;
}

bool is_guarded(const SampledProcess& p, uint64_t pc) {
  static_assert(sizeof p.sites / sizeof *p.sites == 4);
  return (pc == p.entry) | (pc == p.sites[0]) | (pc == p.sites[1]) | (pc == p.sites[2]) | (pc == p.sites[3]);
}

// The program begins. Where Weir does not know its guards yet, the signal has the program's own action until Weir comes back.
void begin(SampledProcess& p) {
  ask(p, Ask::Look);
  if (!p.runs_bare) return;
  set_own_action({SIG_IGN, 0, 0, 0});
  set_own_action(p.action);
}

// Our memory is sparse, and all of it would be made: so pages are locked when they are there, and ours not at all. A limit that ours is too much
// for is not the program's fault: nothing is locked then.
int64_t lock_all(const UContext& c) {
  constexpr uint64_t MCL_CURRENT = 1, MCL_FUTURE = 2, MCL_ONFAULT = 4;
  int64_t result = sys(SYS_mlockall, c.rdi & (MCL_CURRENT | MCL_FUTURE) ? c.rdi | MCL_ONFAULT : c.rdi);
  if (result == -ENOMEM) return 0;
  sys(SYS_munlock, sampler_base, reinterpret_cast<const SamplerHeader*>(sampler_base)->image_size);
  sys(SYS_munlock, sample_tables_base, sample_tables_size);
  sys(SYS_munlock, sample_slots_base, sample_slots_size);
  return result;
}

// Weir may hold the process at this instant.
void announce_tracing(SampledProcess& p, const UContext& c) {
  constexpr uint64_t traceme = 0, attach = 16, seize = 0x4206;
  if (c.rdi != traceme && c.rdi != attach && c.rdi != seize) return;
  ask(p, Ask::Trace, c.rdi == traceme ? p.pid : static_cast<uint32_t>(c.rsi));
}

// From then on calls of ours may end the program, before Weir has seen it. (A thread may do it for itself alone: it counts for all.)
bool confines(const UContext& c) {
  constexpr uint64_t PR_SET_SECCOMP = 22, seccomp = 317;
  return (c.rax == SYS_prctl && c.rdi == PR_SET_SECCOMP) || c.rax == seccomp;
}

// The thread stands before a system call, which is made here instead, or at the begin of its program.
[[gnu::cold]] void guard(SampledProcess& p, UContext& c) {
  if (c.rip == p.entry) return p.may_call ? begin(p) : void();
  constexpr uint64_t ptrace = 101;
  int64_t result;
  if (c.rax == SYS_rt_sigaction && c.rdi == control().signal) result = set_action(p, c);
  else if (!p.may_call) return;
  else if (c.rax == SYS_execve || c.rax == SYS_execveat) result = execute(p, c);
  else if (c.rax == SYS_prctl && c.rdi == PR_SET_SYSCALL_USER_DISPATCH)
    result = set_dispatch(p, c, fs_base(), thread_id(p));
  else if (c.rax == SYS_mlockall) result = lock_all(c);
  else if (c.rax == ptrace) return announce_tracing(p, c);
  else if (confines(c)) return void(p.may_call = 0);
  else return;
  c.rax = static_cast<uint64_t>(result);
  c.rip += syscall_size;
  c.rcx = c.rip, c.r11 = c.eflags;
}

// ---- Interrupted calls ------------------------------------------------------------------------------------------------
// On a shadow stack the kernel has put a word for rt_sigreturn alone.
bool has_shadow_stack() {
  uint64_t top = 0;
  asm volatile("rdsspq %0" : "+r"(top));
  return top != 0;
}

bool is_resuming(const UContext& c) {
  return c.rip >= reinterpret_cast<uint64_t>(rt_resume) && c.rip < address(rt_resume_end);
}

static_assert(offsetof(UContext, r8) == 40 && offsetof(UContext, cs) == 184 &&
              offsetof(UContext, ss) == 190);  // rt_resume's
// As rt_sigreturn does it, but that the kernel keeps what it has noted of an interrupted call.
[[noreturn, gnu::cold]] void resume(const UContext& c) {
  constexpr int32_t SS_AUTODISARM = INT32_MIN;
  if (c.stack_flags & SS_AUTODISARM) sys(SYS_sigaltstack, address(&c.stack_sp));
  const auto* state = reinterpret_cast<const Extended*>(c.fpstate);
  rt_resume(&c, c.fpstate, state && state->magic == extended_magic ? state->features : 0);
}

void forget_handler(int sig, KernelSigaction action) {
  action.handler = SIG_DFL;
  sys(SYS_rt_sigaction, static_cast<uint64_t>(sig), address(&action), 0, 8);
}

// (What waits is asked for last: what comes later finds the thread on its way back.)
[[gnu::cold]] void go_on(SigInfo* info, UContext& c, bool is_dispatched) {
  constexpr int most = 64;
  if (is_begun_again(c) && is_always_begun_again(c)) return;
  const uint64_t number = number_of(c), blocked = blocked_in(number, c), ours = signal_bit(info->signo);
  const bool is_restarted = is_begun_again(c) && number != SYS_restart_syscall;
  const bool goes_on = !is_dispatched && !has_shadow_stack() && is_noted(number, c);
  KernelSigaction action{};
  for (int i = 0, sig; i < most && (sig = find_handler(blocked | ours, action)); i++) {
    if (is_restarted && action.flags & SA_RESTART) return;
    if (is_dispatched) return end_interrupted(c);
    if (!take(sig, *info)) continue;
    end_interrupted(c);
    if (action.flags & SA_RESETHAND) forget_handler(sig, action);
    deliver(sig, &c, action, blocked, true, nullptr);
  }
  if (!goes_on) return;
  if (!is_begun_again(c)) c.rip -= syscall_size;
  c.rax = SYS_restart_syscall;
  resume(c);
}

}  // namespace

extern "C" void rt_sample(int sig, SigInfo* info, UContext* context) {
  uint64_t word = word_of(*info);
  SampledProcess& p = control().processes[process_of(word)];
  if (!word) return hand_over(sig, info, context);
  if (is_resuming(*context)) resume(*context);
  volatile uint8_t* selector = p.dispatch_count ? blocking(p, fs_base()) : nullptr;
  if (selector) *selector = dispatch_allow;
  if (!has_room(*context)) __atomic_fetch_add(&p.lost, 1, __ATOMIC_RELAXED);
  else if (kind_of(word) != SampleKind::Guard) count(p, word, *info, *context);
  // By its place, not by its kind: of two signals that come at the same time, the kernel keeps one.
  if (is_guarded(p, context->rip)) guard(p, *context);
  else if (is_interrupted(*context) && p.may_call) go_on(info, *context, selector);
  if (p.dispatch_count && !selector) selector = blocking(p, fs_base());  // (it may be since this very call)
  if (selector) return_blocking(*context, selector);
}

}  // namespace weir::rt
