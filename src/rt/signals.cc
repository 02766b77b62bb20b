// Signals: the program's handlers see the frames that the kernel would have built, and nothing of the cache.
//
// The kernel calls rt_signal_entry for every signal that the program handles, with a frame on the program's own stack
// (or its alternate stack): so the frame is where, and what, it would be natively, but for the registers, which may be those
// of the middle of a translated instruction. One of three things is true of the interrupted pc:
//   exact    the program's state is exact, or can be put right from the thread block: mend the frame, run the handler;
//   middle   in the middle of a translated instruction: keep the signal, and single-step to an exact place;
//   runtime  in the runtime: keep the signal until the runtime is left. Whoever was just leaving begins that again.
// At an exact place a kept signal is delivered in the frame of a SIGTRAP: that of the last step, or, on the way out of the runtime, that of
// a breakpoint (rt_kept). It does not go back to the kernel, which would merge it with others, or change the order of those that are queued.
// While one is kept all signals are blocked, but for the five that the program's own instructions may raise. They may also be sent: such a
// one is kept, too.

#include "rt/signal_frame.h"
#include "rt/where.h"

namespace weir::rt {

namespace {

constexpr int TRAP_BRKPT = 1, TRAP_TRACE = 2, SYS_USER_DISPATCH = 2, SI_USER = 0, SI_QUEUE = -1, SI_KERNEL = 0x80;
constexpr uint64_t stepping_mask = all_signals & ~(signal_bit(SIGTRAP) | signal_bit(SIGSEGV) | signal_bit(SIGBUS) |
                                                   signal_bit(SIGFPE) | signal_bit(SIGILL));
constexpr uint64_t kept_mask = all_signals & ~signal_bit(SIGTRAP);             // in the runtime
enum Stepping : uint32_t { NotStepping, SteppingOurs = 1, SteppingBoth = 3 };  // Both: the program steps itself, too

bool within(uint64_t pc, const char* begin, const char* end) { return pc >= address(begin) && pc < address(end); }

// Raised by the instruction itself, not sent.
bool is_fault(int sig, const SigInfo* info) {
  if (sig == SIGTRAP) return info->code == TRAP_BRKPT || info->code == TRAP_TRACE || info->code == SI_KERNEL;
  return (sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE || sig == SIGILL || sig == SIGSYS) && info->code > 0;
}

bool is_step(int sig, const SigInfo* info) { return sig == SIGTRAP && info->code == TRAP_TRACE; }

SigInfo* kept(ThreadBlock* tb, uint32_t n) { return reinterpret_cast<SigInfo*>(tb->kept[n]); }

void keep(ThreadBlock* tb, const SigInfo* info, UContext* uc) {
  if (!tb->signal_pending && !tb->stepping) tb->pending_mask = uc->sigmask;
  if (tb->signal_pending < max_kept) *kept(tb, tb->signal_pending++) = *info;
}

// Back to the kernel, to where it came from: what waits for the thread and what waits for the process are not merged. The kernel takes no
// other code than SI_QUEUE for the process: such a signal is known by its value, and gets its own code back when it comes.
constexpr uint64_t queued_again = 0x7765'6972'7369'676e;
void queue(const SigInfo* info) {
  auto pid = uint64_t(sys(SYS_getpid)), sig = uint64_t(info->signo);
  SigInfo copy = *info;
  if (info->code != SI_USER) {
    sys(SYS_rt_tgsigqueueinfo, pid, uint64_t(sys(SYS_gettid)), sig, address(&copy));
  } else {
    copy.code = SI_QUEUE;
    memcpy(copy.rest, &queued_again, sizeof queued_again);
    sys(SYS_rt_sigqueueinfo, pid, sig, address(&copy));
  }
}
void take_code_back(SigInfo* info) {
  uint64_t value;
  memcpy(&value, info->rest, sizeof value);
  if (info->code != SI_QUEUE || value != queued_again) return;
  info->code = SI_USER;
  memset(info->rest, 0, sizeof value);
}

void queue_kept(ThreadBlock* tb) {
  for (uint32_t i = 0; i < tb->signal_pending; i++) queue(kept(tb, i));
  tb->signal_pending = 0;
}

// Our SIGTRAP comes on the alternate stack, where there is one: what the program keeps below its stack pointer is its own affair.
void install(int sig, const KernelSigaction& action) {
  KernelSigaction ours = instead_of(action, address(rt_signal_entry));
  if (sig == SIGTRAP) ours.flags |= SA_ONSTACK | SA_RESTORER, ours.restorer = address(rt_restorer);
  sys(SYS_rt_sigaction, uint64_t(sig), address(&ours), 0, 8);
}

void restore_default(int sig) {
  KernelSigaction action{};
  sys(SYS_rt_sigaction, uint64_t(sig), address(&action), 0, 8);
}

// From `uc` on, to the next exact place.
void step(ThreadBlock* tb, UContext* uc) {
  own_trap(tb);
  tb->stepping = uc->eflags & flag_tf ? SteppingBoth : SteppingOurs;
  uc->eflags |= flag_tf;
  uc->sigmask = stepping_mask;
}

void stop_stepping(ThreadBlock* tb, UContext* uc) {
  if (tb->stepping == SteppingOurs) uc->eflags &= ~flag_tf;
  tb->stepping = NotStepping;
}

// A step of the program's own, inside the runtime: what the doors do is stepped, too, as they save and load the flags; what is behind one
// that saves them is not.
void step_in_runtime(ThreadBlock* tb, UContext* uc) {
  if (within(uc->rip, rt_doors_begin, rt_doors_end)) tb->is_inside = within(uc->rip, rt_enter, rt_enter_end);
  else if (tb->is_inside) uc->eflags &= ~flag_tf;
}

// In the runtime. True: go back.
bool keep_in_runtime(ThreadBlock* tb, int sig, const SigInfo* info, UContext* uc) {
  bool is_inside = within(uc->rip, rt_begin, rt_end) && !within(uc->rip, rt_allowed, rt_allowed_end);
  if (!is_inside || (within(uc->rip, rt_unmasked, rt_unmasked_end) && !is_step(sig, info))) return false;
  if (uc->rip == address(rt_kept_end) && sig == SIGTRAP && is_fault(sig, info)) return false;
  if (is_step(sig, info) && !(tb->stepping & SteppingOurs)) return step_in_runtime(tb, uc), true;
  if (tb->stepping) {
    stop_stepping(tb, uc);
    uc->sigmask = tb->signal_pending ? kept_mask : tb->pending_mask;
  }
  if (is_step(sig, info)) {
    step_in_runtime(tb, uc);
  } else if (is_fault(sig, info)) {
    if (tb->fault_pc && within(uc->rip, rt_exit, rt_exit_end)) return false;  // a jump that the processor refused
    restore_default(sig);  // a bug of ours, or a bad stack of the program's: it ends as it would have
    return true;
  } else {
    keep(tb, info, uc);
    uc->sigmask = kept_mask;
  }
  if (within(uc->rip, rt_exit, rt_exit_end)) uc->rip = address(rt_exit);
  if (within(uc->rip, rt_probe_exit, rt_probe_exit_end)) uc->rip = address(rt_probe_exit);
  if (within(uc->rip, rt_light_exit, rt_light_exit_end)) uc->rip = address(rt_light_exit);
  if (within(uc->rip, rt_guard_exit, rt_guard_exit_end)) uc->rip = address(rt_guard_exit);
  if (within(uc->rip, rt_exec_window, rt_exec_window_end)) uc->rip = address(rt_exec_aborted);
  if (within(uc->rip, rt_sigreturn_window, rt_sigreturn_kept)) uc->rip = address(rt_sigreturn_kept);
  return true;
}

// The flags as lahf and seto have left them in rax.
uint64_t with_flags_in(uint64_t eflags, uint64_t rax) {
  constexpr uint64_t in_ah = 0xd5, overflow = 0x800;
  return (eflags & ~(in_ah | overflow)) | (rax >> 8 & in_ah) | (rax & 1 ? overflow : 0);
}

void mend_frame(ThreadBlock* tb, UContext* uc, const Spot& at) {
  if (at.restore & RestoreFlags) uc->eflags = with_flags_in(uc->eflags, uc->rax), uc->rax = tb->more_spills[0];
  if (at.restore & RestoreRcx) uc->rcx = tb->rcx;
  if (at.restore & RestoreSpill0) *frame_register(uc, at.spilled & 15) = tb->spill[0];
  if (at.restore & RestoreSpill1) *frame_register(uc, at.spilled >> 4 & 15) = tb->spill[1];
  if (at.restore & RestoreSpill2) *frame_register(uc, at.spilled >> 8 & 15) = tb->spill[2];
  if (at.restore & RestoreSpill3) *frame_register(uc, at.spilled >> 12 & 15) = tb->spill[3];
  if (at.restore & SetRcxToPc) uc->rcx = at.app;
  uc->rip = at.app;
}

// Its place in ThreadBlock::interrupted.
uint32_t remember(ThreadBlock* tb, UContext* uc, uint64_t cache_pc) {
  for (auto& i : tb->interrupted)
    if (i.frame == address(uc)) i = {};  // of a handler that never returned
  uint32_t index = tb->interrupted_next++ % interrupted_count;
  tb->interrupted[index] = {address(uc), uc->rip, cache_pc, altstack_of(uc), tb->code_version};
  return index;
}

// Where a handler begins in the cache, entered as by a call.
uint64_t entry_of(ThreadBlock* tb, int sig, uint64_t handler) {
  HandlerEntry& e = tb->handlers[sig - 1];
  const auto* page = reinterpret_cast<const volatile SpacePage*>(space_base);
  uint64_t table = page->tables[tb->code_version % max_versions];
  auto cell = [&] { return *reinterpret_cast<const volatile uint64_t*>(table + 8 * uint64_t(uint32_t(handler))); };
  bool has_cell = true;  // not where that part of the table is the program's
  for (uint32_t i = 0; i < page->given_count && i < max_given; i++)
    has_cell &= uint32_t(handler) < page->given[i].begin || uint32_t(handler) >= page->given[i].end;
  if (has_cell && e.handler == handler && e.cell && e.cell == cell()) return e.cache_pc;
  GoOn to = ask(tb, ResumeRequest{handler, Resuming::Call});
  e = {handler, has_cell && to.native == NotNative ? cell() : 0, to.pc};
  return e.cache_pc;
}

// The frame is right: leave the runtime for the program's handler, as the kernel would have called it.
int deliver(ThreadBlock* tb, int sig, UContext* uc, const Spot& at) {
  KernelSigaction& entry = tb->actions[sig - 1];
  const KernelSigaction action = entry;
  bool clock_is_away = at.restore & RestoreClock;
  tb->signals++;
  mend_frame(tb, uc, at);
  if (sig == SIGSYS && info_of(uc)->code > 0) drop_call(tb, uc->rip, uc->rsp);
  uc = on_right_stack(uc, action.flags);
  uint32_t index = remember(tb, uc, clock_is_away ? 0 : at.resume);  // (in the middle of a stretch: to be translated anew)
  uint64_t mask = uc->sigmask | action.mask | (action.flags & SA_NODEFER ? 0 : signal_bit(sig));
  if (action.flags & SA_RESETHAND) {
    entry = {};
    if (sig != SIGTRAP) restore_default(sig);
  }
  auto* frame = reinterpret_cast<SignalFrame*>(address(uc) - offsetof(SignalFrame, uc));
  frame->restorer = action.restorer;
  registers_from_frame(uc, tb->regs);
  tb->rcx = tb->regs.gpr[1];
  tb->regs.gpr[0] = 0;
  tb->regs.gpr[7] = uint64_t(sig);
  tb->regs.gpr[6] = address(info_of(uc));
  tb->regs.gpr[2] = address(uc);
  tb->regs.gpr[4] = address(frame);
  tb->regs.flags = uc->eflags & ~(flag_tf | 0x400 | 0x10000);  // as the kernel clears TF, DF and RF
  tb->steps.app_pc = 0;
  guard_doors(tb, is_on_altstack(uc, address(uc)));
  take_clock(tb, uc, clock_is_away);
  call_hook(tb, &Hooks::handler_begins, index);
  interrupt_calls(tb, index);
  tell_frame(tb, sig, uc);
  tb->regs.pc = entry_of(tb, sig, action.handler);
  tb->exit_mask = mask;
  tb->exit_unmask = 1;
  return 1;
}

// The program does not handle it: SIGTRAP, which is ours. (What it raised itself ends it, whatever it says.)
bool is_unhandled(ThreadBlock* tb, int sig, SigInfo* info) {
  uint64_t handler = tb->actions[sig - 1].handler;
  if (handler != SIG_DFL && handler != SIG_IGN) return false;
  if (handler == SIG_IGN && !is_fault(sig, info)) return true;
  restore_default(sig);
  queue(info);
  return true;
}

// At an exact place, in the frame of a SIGTRAP.
int deliver_kept(ThreadBlock* tb, SigInfo* info, UContext* uc, const Spot& at) {
  stop_stepping(tb, uc);
  uc->sigmask = tb->pending_mask;
  if (!tb->signal_pending) tb->returned_to = uc->rip;  // (the step was made to get on at all)
  uint32_t n = 0;
  while (n < tb->signal_pending && (uc->sigmask & signal_bit(kept(tb, n)->signo))) n++;
  if (n < tb->signal_pending) {
    *info = *kept(tb, n);
    tb->signal_pending--;
    for (uint32_t i = n; i < tb->signal_pending; i++) *kept(tb, i) = *kept(tb, i + 1);
  } else {
    info->signo = 0;
  }
  queue_kept(tb);
  if (!info->signo || is_unhandled(tb, info->signo, info)) return 0;
  return deliver(tb, info->signo, uc, at);
}

// Has an instruction of the program ended, that it wanted to step?
bool ends_own_step(ThreadBlock* tb, UContext* uc, const Spot& at) {
  OwnSteps& s = tb->steps;
  if (!s.app_pc) {  // it has just been switched on
    bool behind_popf = uint32_t(at.app) == tb->flags_pc;
    s = {behind_popf ? at.app : 1, 1, {uc->rip}};
    if (behind_popf) return false;
  }
  bool is_new = at.app != s.app_pc;
  for (uint32_t i = 0; i < s.count && !is_new; i++) is_new = s.places[i] == uc->rip;
  if (!is_new) {
    if (s.count < max_step_places) s.places[s.count++] = uc->rip;
    return false;
  }
  // The kernel leaves a system call without a trap: the next comes behind the instruction that follows.
  uint16_t before = 0;
  bool is_call = at.app == s.app_pc + 2 && read_memory(reinterpret_cast<void*>(s.app_pc), &before, 2) && before == 0x050f;
  s = {at.app, 1, {uc->rip}};
  return !is_call;
}

// The kernel names the place that it saw.
void mend_address(int sig, SigInfo* info, uint64_t cache_pc, const Spot& at) {
  bool has_pc = sig == SIGILL || sig == SIGFPE || sig == SIGTRAP || sig == SIGSYS;
  if (has_pc && info->code > 0 && info->addr == cache_pc) info->addr = at.app;
}

// Signals may come faster than the program gets on: a handler has returned here, and nothing was executed since.
constexpr uint32_t most_standstills = 8;
void count_standstill(ThreadBlock* tb, uint64_t cache_pc) {
  if (tb->returned_to != cache_pc) tb->standstills = 0;
  else if (tb->standstills < most_standstills) tb->standstills++;
}

// May the instruction be stepped, with all signals blocked? Not a system call, which may wait for one, and not pushf, which shows the flag.
bool may_step(uint64_t cache_pc) {
  const auto* code = reinterpret_cast<const uint8_t*>(cache_pc);
  return !(code[0] == 0x0f && code[1] == 0x05) && code[0] != 0x9c && !(code[0] == 0x66 && code[1] == 0x9c);
}

}  // namespace

extern "C" {

// Returns 1 to leave the runtime with tb->regs, 0 to return from the signal.
int rt_signal(int sig, SigInfo* info, UContext* uc, ThreadBlock* tb) {
  if (sig == SIGSEGV && info->addr - (address(tb) + frames_end) < 4096) sys(SYS_exit_group, 125);  // Weir will say why
  take_code_back(info);
  if (keep_in_runtime(tb, sig, info, uc)) return 0;
  bool leaves = uc->rip == address(rt_kept_end);
  if (within(uc->rip, rt_exit, rt_exit_end)) {
    registers_to_frame(tb->regs, uc);
    if (tb->fault_pc) uc->rip = tb->fault_pc;  // (another signal: the jump is made again when its handler returns)
    tb->fault_pc = 0;
  }
  uint64_t cache_pc = uc->rip;
  Spot at = where(tb, cache_pc);
  bool is_ours = leaves || (tb->stepping && is_step(sig, info));
  bool is_own_step = is_step(sig, info) && tb->stepping != SteppingOurs;
  if (is_own_step && (at.place == Place::Middle || !ends_own_step(tb, uc, at))) is_own_step = false;
  if (is_ours && !is_own_step) {
    if (at.place != Place::Middle) return deliver_kept(tb, info, uc, at);
    if (leaves) step(tb, uc);
    return 0;
  }
  if (is_step(sig, info) && !is_own_step) return 0;
  if (!is_fault(sig, info)) {
    if (tb->stepping || at.place == Place::Middle) {
      keep(tb, info, uc);
      if (!tb->stepping) step(tb, uc);
      return 0;
    }
    count_standstill(tb, cache_pc);
  } else if (tb->stepping) {  // the others are delivered behind this one
    stop_stepping(tb, uc);
    uc->sigmask = tb->pending_mask;
    queue_kept(tb);
  }
  if (sig == SIGSYS && info->code == SYS_USER_DISPATCH && is_allowed(tb, at.app)) {
    tb->allowed_pc = at.app - 2, tb->allowed_return = cache_pc;
    uc->rip = address(rt_allowed);
    return 0;
  }
  if (is_unhandled(tb, sig, info)) return 0;
  mend_address(sig, info, cache_pc, at);
  return deliver(tb, sig, uc, at);
}

// The runtime is about to be left with a kept signal, for the breakpoint where that is delivered.
void rt_prepare_kept(ThreadBlock* tb) {
  own_trap(tb);
  uint64_t mask = kept_mask;
  if (!tb->quiet) sys(SYS_rt_sigprocmask, 2, address(&mask), 0, 8);
  tb->exit_unmask = 0;
}

}  // extern "C"

// SIGTRAP is ours from now on.
void own_trap(ThreadBlock* tb) {
  if (tb->has_trap) return;
  tb->has_trap = 1;
  KernelSigaction now{};
  sys(SYS_rt_sigaction, SIGTRAP, 0, address(&now), 8);  // (once: another thread may be about to do the same)
  if (now.handler != address(rt_signal_entry)) tb->actions[SIGTRAP - 1] = now;
  install(SIGTRAP, now);
}

// Before and, if it fails, after an exec: what was ignored must be so in the new program.
bool give_trap_back(ThreadBlock* tb) {
  if (!tb->has_trap || tb->actions[SIGTRAP - 1].handler != SIG_IGN) return false;
  sys(SYS_rt_sigaction, SIGTRAP, address(&tb->actions[SIGTRAP - 1]), 0, 8);
  return true;
}
void take_trap_again(ThreadBlock* tb) { install(SIGTRAP, tb->actions[SIGTRAP - 1]); }

// In the runtime the stack pointer is the runtime's: the kernel, which looks at it, would put the next frame at the top of an alternate
// stack that is in use. So signals are blocked before the runtime is entered from there.
void guard_doors(ThreadBlock* tb, bool on) {
  if (tb->quiet || tb->guarded == on) return;
  tb->guarded = on;
  const uint64_t* doors = on ? rt_guarded_doors : rt_doors;
  for (uint32_t i = 0; i < door_count; i++) (&tb->enter_link)[i] = doors[i];
}

int64_t set_action(ThreadBlock* tb, int sig, uint64_t act, uint64_t old, uint64_t set_size) {
  KernelSigaction before{}, action{};
  if (int64_t error = own_call(tb, SYS_rt_sigaction, uint64_t(sig), 0, address(&before), set_size)) return error;
  if (act && !read_memory(reinterpret_cast<void*>(act), &action, sizeof action)) return -EFAULT;
  KernelSigaction& entry = tb->actions[sig - 1];
  bool is_ours = before.handler == address(rt_signal_entry);
  if (is_ours) before = entry;
  if (act) {
    bool handled = action.handler != SIG_DFL && action.handler != SIG_IGN;
    // The kernel refuses SIGKILL and SIGSTOP, for any action.
    if (!handled && !(is_ours && sig == SIGTRAP)) {
      if (int64_t error = sys(SYS_rt_sigaction, uint64_t(sig), address(&action), 0, 8)) return error;
      entry = action;
    } else {
      if (sig == 9 || sig == 19) return -EINVAL;
      entry = action;
      install(sig, action);
    }
  }
  if (old && !write_memory(reinterpret_cast<void*>(old), &before, sizeof before)) return -EFAULT;
  return 0;
}

// The handler has interrupted a system call behind which the thread was to change versions.
static void send_from_call(ThreadBlock* tb, uint64_t call) {
  tb->allowed_pc = call, tb->sent_from = call + 2;
  tb->allowed_return = address(tb->guarded ? rt_guarded_sent_back : rt_sent_back);
}

// rt_sigreturn: the kernel does it, to the cache address of the pc that the frame names.
void return_from_signal(ThreadBlock* tb) {
  uint64_t rsp = tb->regs.gpr[4];
  auto* uc = reinterpret_cast<UContext*>(rsp);
  uint64_t pc = 0;
  uint32_t index = 0;
  while (index < interrupted_count && tb->interrupted[index].frame != rsp) index++;
  resume_calls(tb, index, rsp);
  if (index < interrupted_count) {
    Interrupted& i = tb->interrupted[index];
    if (i.app_pc == uc->rip) pc = i.cache_pc, tb->code_version = uint32_t(i.version);
    i = {};
  }
  call_hook(tb, &Hooks::handler_ends, index, rsp, pc != 0);
  if (!pc) pc = ask(tb, ResumeRequest{uc->rip, Resuming::Anywhere}).pc;
  bool is_own_step = uc->eflags & flag_tf;
  tb->steps = {is_own_step ? uc->rip : 0, 1, {pc}};
  return_clock(tb, uc);
  guard_doors(tb, is_on_altstack(uc, uc->rsp));
  if (pc == address(rt_allowed)) send_from_call(tb, uc->rip);
  uc->rip = tb->returned_to = pc;
  tb->exit_unmask = 0;
  uint64_t mask = uc->sigmask;
  bool gets_on = tb->standstills < most_standstills || is_own_step || !may_step(pc);
  if (!gets_on && !tb->signal_pending) {  // one instruction without any signal
    tb->pending_mask = mask;
    step(tb, uc);
  }
  call_hook(tb, &Hooks::kernel_begins);  // of the call that the handler interrupted
  rt_sigreturn(rsp);
  // A signal was kept first: it is delivered where the handler returns to. (Not by stepping: a system call may be there.)
  if (!is_own_step) uc->eflags &= ~flag_tf;
  tb->stepping = NotStepping;
  tb->pending_mask = mask;
  registers_from_frame(uc, tb->regs);
  tb->regs.pc = pc;
  own_trap(tb);
  uc->eflags &= ~flag_tf;
  uc->rip = address(rt_kept);
  uc->sigmask = kept_mask;
  rt_sigreturn_now(rsp);
}

}  // namespace weir::rt
