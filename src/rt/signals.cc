// Signals: the program's handlers see the frames that the kernel would have built, and nothing of the cache.
//
// The kernel calls rt_signal_entry for every signal that the program handles, with a frame on the program's own stack
// (or its alternate stack): so the frame is where, and what, it would be natively, but for the registers, which may be those
// of the middle of a translated instruction. One of four things is true of the interrupted pc:
//   exact    the program's state is exact, or can be put right from the thread block: mend the frame, run the handler;
//   middle   in the middle of a translated instruction: single-step to an exact place, there queue the signal again;
//   runtime  in the runtime: keep the signal, and queue it again when the runtime is left;
//   leaving  the runtime was just being left: begin that again, now with a signal to be queued.
// "Queue again" lets the kernel deliver it at an exact place: masks, stacks and restarts are its business, not ours.

#include "rt/runtime.h"

namespace weir::rt {

namespace {

constexpr int TRAP_TRACE = 2, SI_KERNEL = 0x80;

bool within(uint64_t pc, const char* begin, const char* end) { return pc >= address(begin) && pc < address(end); }

bool is_fault(int sig, const SigInfo* info) {
  return (sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE || sig == SIGILL || sig == SIGTRAP || sig == SIGSYS) &&
         info->code > 0;
}

void registers_to_frame(const Registers& r, UContext* uc) {
  uc->rax = r.gpr[0], uc->rcx = r.gpr[1], uc->rdx = r.gpr[2], uc->rbx = r.gpr[3];
  uc->rsp = r.gpr[4], uc->rbp = r.gpr[5], uc->rsi = r.gpr[6], uc->rdi = r.gpr[7];
  uc->r8 = r.gpr[8], uc->r9 = r.gpr[9], uc->r10 = r.gpr[10], uc->r11 = r.gpr[11];
  uc->r12 = r.gpr[12], uc->r13 = r.gpr[13], uc->r14 = r.gpr[14], uc->r15 = r.gpr[15];
  uc->eflags = r.flags;
  uc->rip = r.pc;
}

uint64_t* frame_register(UContext* uc, unsigned n) {
  uint64_t* const in_order[16] = {&uc->rax, &uc->rcx, &uc->rdx, &uc->rbx, &uc->rsp, &uc->rbp, &uc->rsi, &uc->rdi,
                                  &uc->r8,  &uc->r9,  &uc->r10, &uc->r11, &uc->r12, &uc->r13, &uc->r14, &uc->r15};
  return in_order[n & 15];
}

void registers_from_frame(const UContext* uc, Registers& r) {
  for (unsigned i = 0; i < 16; i++) r.gpr[i] = *frame_register(const_cast<UContext*>(uc), i);
  r.flags = uc->eflags;
}

void keep(ThreadBlock* tb, int sig, const SigInfo* info, UContext* uc) {
  tb->signal_pending = uint32_t(sig);
  tb->pending_mask = uc->sigmask;
  *reinterpret_cast<SigInfo*>(tb->pending_info) = *info;
}

void queue_again(ThreadBlock* tb) {
  sys(SYS_rt_tgsigqueueinfo, uint64_t(sys(SYS_getpid)), uint64_t(sys(SYS_gettid)), tb->signal_pending,
      address(tb->pending_info));
  tb->signal_pending = 0;
}

void install(int sig, const KernelSigaction& action) {
  KernelSigaction ours = instead_of(action, address(rt_signal_entry));
  sys(SYS_rt_sigaction, uint64_t(sig), address(&ours), 0, 8);
}

void restore_default(int sig) {
  KernelSigaction action{};
  sys(SYS_rt_sigaction, uint64_t(sig), address(&action), 0, 8);
}

void begin_stepping(ThreadBlock* tb, int sig, const SigInfo* info, UContext* uc) {
  keep(tb, sig, info, uc);
  tb->stepping = 1;
  KernelSigaction now{};
  sys(SYS_rt_sigaction, SIGTRAP, 0, address(&now), 8);  // (once: another thread may be about to do the same)
  if (now.handler != address(rt_signal_entry)) {
    tb->actions[SIGTRAP - 1] = now;  // default or ignore: deliver() does what it says
    now.flags |= SA_RESTORER | SA_ONSTACK;
    now.restorer = tb->actions[sig - 1].restorer;
    install(SIGTRAP, now);
  }
  uc->eflags |= flag_tf;
  // A fault on the way is the program's own.
  uc->sigmask = all_signals &
                ~(signal_bit(SIGTRAP) | signal_bit(SIGSEGV) | signal_bit(SIGBUS) | signal_bit(SIGFPE) | signal_bit(SIGILL));
}

void stop_stepping(ThreadBlock* tb, UContext* uc) {
  tb->stepping = 0;
  uc->eflags &= ~flag_tf;
}

// In the runtime. True: the signal was kept, go back.
bool keep_in_runtime(ThreadBlock* tb, int sig, const SigInfo* info, UContext* uc) {
  if (!within(uc->rip, rt_begin, rt_end) || within(uc->rip, rt_unmasked, rt_unmasked_end)) return false;
  if (is_fault(sig, info) && !(tb->stepping && sig == SIGTRAP)) {
    if (tb->fault_pc && within(uc->rip, rt_exit, rt_exit_end)) return false;  // a jump that the processor refused
    restore_default(sig);  // a bug of ours, or a bad stack of the program's: it ends as it would have
    return true;
  }
  if (tb->stepping) stop_stepping(tb, uc);
  else keep(tb, sig, info, uc);
  uc->sigmask = all_signals;
  if (within(uc->rip, rt_exit, rt_exit_end)) uc->rip = address(rt_exit);
  if (within(uc->rip, rt_probe_exit, rt_probe_exit_end)) uc->rip = address(rt_probe_exit);
  if (within(uc->rip, rt_light_exit, rt_light_exit_end)) uc->rip = address(rt_light_exit);
  if (within(uc->rip, rt_exec_window, rt_exec_window_end)) uc->rip = address(rt_exec_aborted);
  return true;
}

void mend_frame(ThreadBlock* tb, UContext* uc) {
  const RequestBlock& r = tb->request;
  uint64_t restore = r.values[1];
  if (restore & RestoreRcx) uc->rcx = tb->rcx;
  if (restore & RestoreSpill0) *frame_register(uc, r.values[2] & 15) = tb->spill[0];
  if (restore & RestoreSpill1) *frame_register(uc, r.values[2] >> 4 & 15) = tb->spill[1];
  if (restore & SetRcxToPc) uc->rcx = r.pc;
  uc->rip = r.pc;
}

void remember(ThreadBlock* tb, UContext* uc, uint64_t cache_pc) {
  for (auto& i : tb->interrupted)
    if (i.frame == address(uc)) i = {};  // of a handler that never returned
  tb->interrupted[tb->interrupted_next++ % interrupted_count] = {address(uc), uc->rip, cache_pc, {}};
}

// Where a frame keeps zmm31; null: nowhere. (The kernel writes all of the area, or, where all registers in it were zero, nothing.)
uint8_t* zmm31_of(ThreadBlock* tb, UContext* uc) {
  constexpr uint32_t magic = 0x46505853, first_in_area = 16, area_size = 1024;
  constexpr uint64_t area_bit = 1 << 7;
  struct Extended {
    uint8_t fxsave[464];
    uint32_t magic, size;
    uint64_t features;
    uint32_t state_size, padding[7];
    uint64_t in_use;
  };
  static_assert(offsetof(Extended, in_use) == 512);
  auto* state = reinterpret_cast<Extended*>(uc->fpstate);
  uint64_t area = tb->zmm31_offset - (31 - first_in_area) * 64;
  if (!state || state->magic != magic || !(state->features & area_bit) || state->state_size < area + area_size)
    return nullptr;
  uint8_t* begin = reinterpret_cast<uint8_t*>(state);
  if (!(state->in_use & area_bit)) memset(begin + area, 0, area_size);
  state->in_use |= area_bit;
  return begin + tb->zmm31_offset;
}

// A handler begins with all vector registers zero. The frame gets the program's zmm31, the clock goes on.
void take_clock(ThreadBlock* tb, UContext* uc, bool is_away) {
  if (!tb->clock_in_register) return;
  Times clock = tb->clock_away;
  uint8_t* saved = zmm31_of(tb, uc);
  if (saved && !is_away) {
    memcpy(&clock, saved, sizeof clock);
    memcpy(saved, tb->zmm31, sizeof tb->zmm31);
  }
  memset(tb->zmm31, 0, sizeof tb->zmm31);
  set_clock(tb, clock);
}
void return_clock(ThreadBlock* tb, UContext* uc) {
  if (!tb->clock_in_register) return;
  Times clock = now(tb);
  uint8_t* saved = zmm31_of(tb, uc);
  if (!saved) {  // a frame of the program's own making: all vector registers will be zero
    memset(tb->zmm31, 0, sizeof tb->zmm31);
    return shift_frames(tb, clock);
  }
  memcpy(tb->zmm31, saved, sizeof tb->zmm31);
  memset(saved, 0, sizeof tb->zmm31);
  memcpy(saved, &clock, sizeof clock);
}

// The frame is right: leave the runtime for the program's handler, as the kernel would have called it.
int deliver(ThreadBlock* tb, int sig, SigInfo* info, UContext* uc, bool clock_is_away) {
  KernelSigaction& entry = tb->actions[sig - 1];
  KernelSigaction action = entry;
  tb->signals++;
  if (action.handler == SIG_DFL || action.handler == SIG_IGN) {  // SIGTRAP, installed for stepping only
    if (action.handler == SIG_DFL || is_fault(sig, info)) {
      restore_default(sig);
      keep(tb, sig, info, uc);
      queue_again(tb);
    }
    for (auto& i : tb->interrupted)
      if (i.frame == address(uc) && i.cache_pc) uc->rip = i.cache_pc;
    return 0;
  }
  uint64_t mask = uc->sigmask | action.mask | (action.flags & SA_NODEFER ? 0 : signal_bit(sig));
  if (action.flags & SA_RESETHAND) {
    entry = {};
    restore_default(sig);
  }
  registers_from_frame(uc, tb->regs);
  tb->regs.gpr[0] = 0;
  tb->regs.gpr[7] = uint64_t(sig);
  tb->regs.gpr[6] = address(info);
  tb->regs.gpr[2] = address(uc);
  tb->regs.gpr[4] = address(uc) - 8;
  tb->regs.flags = uc->eflags & ~(flag_tf | 0x400 | 0x10000);  // as the kernel clears TF, DF and RF
  take_clock(tb, uc, clock_is_away);
  begin_handler(tb, address(uc));
  ask(tb, Request::Resume, action.handler, 1);
  tb->regs.pc = tb->request.pc;
  tb->exit_mask = mask;
  tb->exit_unmask = 1;
  return 1;
}

}  // namespace

extern "C" {

// Returns 1 to leave the runtime with tb->regs, 0 to return from the signal.
int rt_signal(int sig, SigInfo* info, UContext* uc, ThreadBlock* tb) {
  if (sig == SIGSEGV && info->addr - (address(tb) + frames_end) < 4096) sys(SYS_exit_group, 125);  // Weir will say why
  if (keep_in_runtime(tb, sig, info, uc)) return 0;
  if (within(uc->rip, rt_exit, rt_exit_end)) {
    registers_to_frame(tb->regs, uc);
    if (tb->fault_pc) uc->rip = tb->fault_pc;  // (another signal: the jump is made again when its handler returns)
    tb->fault_pc = 0;
  }
  bool step = tb->stepping && sig == SIGTRAP && info->code == TRAP_TRACE;
  bool fault = is_fault(sig, info) && !step;
  if (fault && tb->stepping) {  // the other signal is delivered behind this one
    stop_stepping(tb, uc);
    uc->sigmask = tb->pending_mask;
    queue_again(tb);
  }
  uint64_t cache_pc = uc->rip;
  ask(tb, Request::Where, cache_pc, fault);
  Place place = Place(tb->request.values[0]);
  if (step) {
    if (place == Place::Middle) return 0;
    stop_stepping(tb, uc);
    uc->sigmask = tb->pending_mask;
    queue_again(tb);
    return 0;
  }
  if (place == Place::Middle && !fault) {
    begin_stepping(tb, sig, info, uc);
    return 0;
  }
  bool clock_is_away = false;
  if (place != Place::NotCache) {
    if ((sig == SIGILL || sig == SIGFPE || sig == SIGTRAP || sig == SIGSYS) && info->code > 0 && info->addr == cache_pc)
      info->addr = tb->request.pc;
    mend_frame(tb, uc);
    clock_is_away = tb->request.values[1] & RestoreClock;
    remember(tb, uc, clock_is_away ? 0 : tb->request.values[3]);  // (in the middle of a stretch: to be translated anew)
  }
  return deliver(tb, sig, info, uc, clock_is_away);
}

void rt_requeue_pending(ThreadBlock* tb) {
  queue_again(tb);
  tb->exit_mask = tb->pending_mask;
  tb->exit_unmask = 1;
}

}  // extern "C"

int64_t set_action(ThreadBlock* tb, int sig, uint64_t act, uint64_t old, uint64_t set_size) {
  KernelSigaction before{}, action{};
  if (int64_t error = sys(SYS_rt_sigaction, uint64_t(sig), 0, address(&before), set_size)) return error;
  if (act && !read_memory(reinterpret_cast<void*>(act), &action, sizeof action)) return -EFAULT;
  KernelSigaction& entry = tb->actions[sig - 1];
  if (before.handler == address(rt_signal_entry)) before = entry;
  if (act) {
    bool handled = action.handler != SIG_DFL && action.handler != SIG_IGN;
    // The kernel refuses SIGKILL and SIGSTOP, for any action.
    if (!handled) {
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

// rt_sigreturn: the kernel does it, to the cache address of the pc that the frame names.
void return_from_signal(ThreadBlock* tb) {
  uint64_t rsp = tb->regs.gpr[4];
  auto* uc = reinterpret_cast<UContext*>(rsp);
  uint64_t pc = 0;
  if (tb->frames_top) os_leave(tb);  // this call itself: control does not come back behind it
  for (uint32_t k = 0; k < interrupted_count; k++) {
    Interrupted& i = tb->interrupted[k];
    if (i.frame != rsp) continue;
    if (i.app_pc == uc->rip) pc = i.cache_pc;
    if (tb->frames_top) take_os_call_back(tb, k);
    tb->leaf = i.leaf;
    i = {};
  }
  end_handler(tb, rsp, pc);
  if (!pc) {
    ask(tb, Request::Resume, uc->rip);
    pc = tb->request.pc;
  }
  return_clock(tb, uc);
  uint64_t mask = uc->sigmask;
  // Signals stay blocked until the program is back in its own context: a kept one is queued again there.
  block_signals(tb);
  if (tb->signal_pending) queue_again(tb);
  uc->rip = pc;
  uc->sigmask = mask;
  rt_sigreturn(rsp);
}

}  // namespace weir::rt
