// Requests to the Weir process, and what happens when translated code comes to its end.

#include "rt/runtime.h"

#include "rt/offsets.h"
#include "rt/virtual_clock.h"

namespace weir::rt {

static_assert(ABI_VERSION == abi_version);
static_assert(REGS == offsetof(ThreadBlock, regs));
static_assert(REGS_FLAGS == offsetof(ThreadBlock, regs) + offsetof(Registers, flags));
static_assert(REGS_PC == offsetof(ThreadBlock, regs) + offsetof(Registers, pc));
static_assert(DEAD == offsetof(ThreadBlock, dead));
static_assert(SIGNAL_PENDING == offsetof(ThreadBlock, signal_pending));
static_assert(EXIT_MASK == offsetof(ThreadBlock, exit_mask));
static_assert(EXIT_UNMASK == offsetof(ThreadBlock, exit_unmask));
static_assert(EXIT_ID == offsetof(ThreadBlock, exit_id));
static_assert(NO_ROUTINE == no_routine);
static_assert(LIGHT_ROUTINES == offsetof(ThreadBlock, light));
static_assert(DOOR_REGISTERS == offsetof(ThreadBlock, door_registers));
static_assert(ALLOWED_RETURN == offsetof(ThreadBlock, allowed_return));
static_assert(SENT_FROM == offsetof(ThreadBlock, sent_from));
static_assert(GUARD_PC == offsetof(Guard, cache_pc) && GUARD_LOCKED == offsetof(Guard, is_locked) &&
              GUARD_CODE == offsetof(Guard, code));
static_assert(GUARDED_SIZE == offsetof(GuardedCode, size) && GUARDED_WAS == offsetof(GuardedCode, was));
static_assert(GUARDED_NEXT == sizeof(GuardedCode) && offsetof(GuardedCode, begin) == 0);
static_assert(HAS_WRGSBASE == offsetof(ThreadBlock, has_wrgsbase));
static_assert(SIGNAL_STACK_TOP == offsetof(ThreadBlock, signal_stack) + signal_stack_size);
static_assert(STACK_TOP == offsetof(ThreadBlock, stack) + rt_stack_size);

namespace {

constexpr uint64_t FUTEX_WAIT = 0, FUTEX_WAKE = 1;

ControlBlock* control() { return reinterpret_cast<ControlBlock*>(blocks_base); }

void post(ThreadBlock* tb, Request kind) {
  RequestBlock& r = tb->request;
  r.kind = kind;
  r.waiting = 0;
  r.soon.count = 0;
  __atomic_store_n(&r.state, RequestState::Posted, __ATOMIC_RELEASE);
  ControlBlock* c = control();
  __atomic_fetch_or(&c->posted[tb->slot / 64], uint64_t{1} << tb->slot % 64, __ATOMIC_SEQ_CST);
  if (tb->quiet) return;
  if (__atomic_load_n(&c->sleeping, __ATOMIC_SEQ_CST)) {
    __atomic_fetch_add(&c->doorbell, 1, __ATOMIC_SEQ_CST);
    sys(SYS_futex, address(&c->doorbell), FUTEX_WAKE, 1);
  }
}

bool answered(RequestBlock& r) { return __atomic_load_n(&r.state, __ATOMIC_ACQUIRE) == RequestState::Answered; }

// The next page of what Weir says it will need. False: there is none.
struct Toucher {
  const Soon& soon;
  uint32_t range = 0;
  uint64_t offset = 0;

  bool touch_next() {
    while (range < __atomic_load_n(&soon.count, __ATOMIC_ACQUIRE)) {
      uint64_t at = soon.ranges[range].begin + offset;
      if (at < soon.ranges[range].end) {
        __atomic_load_n(reinterpret_cast<const uint8_t*>(at), __ATOMIC_RELAXED);
        offset += 4096;
        return true;
      }
      range++, offset = 0;
    }
    return false;
  }
};

void wait(ThreadBlock* tb) {
  RequestBlock& r = tb->request;
  Toucher toucher{r.soon};
  auto is_worked_on = [&] { return __atomic_load_n(&r.soon.count, __ATOMIC_RELAXED) != 0; };
  for (uint32_t i = 0; i < tb->spins || (i < work_spins && is_worked_on()); i++) {
    if (answered(r)) {
      tb->spins = adapted_spins(tb->spins, true);
      return;
    }
    if (!toucher.touch_next()) asm volatile("pause");
  }
  tb->spins = adapted_spins(tb->spins, false);
  // The guardian says so where it has ended everybody that it knew of; where there is no guardian either, the kernel does.
  auto look_for_weir = [&](bool may_ask) {
    uint32_t weir = __atomic_load_n(&control()->weir_pid, __ATOMIC_RELAXED);
    bool is_gone = !weir || (may_ask && !tb->elsewhere && sys(SYS_kill, weir, 0) == -ESRCH);
    if (is_gone && !answered(r)) die("the weir process has gone");
  };
  while (tb->quiet && !answered(r)) {
    asm volatile("pause");
    look_for_weir(false);
  }
  __atomic_store_n(&r.waiting, 1, __ATOMIC_SEQ_CST);
  while (!answered(r)) {
    struct {
      int64_t seconds, nanoseconds;
    } second{1, 0};
    sys(SYS_futex, address(&r.state), FUTEX_WAIT, uint64_t(RequestState::Posted), address(&second));
    look_for_weir(true);
  }
}

// The system calls that came with an answer. What came of them is told to Weir, which may want more.
void make_calls(ThreadBlock* tb) {
  RequestBlock& r = tb->request;
  int64_t descriptor = -1, result = 0;
  uint64_t failed = 0;
  for (uint64_t i = 0; i < r.calls && i < max_calls && !failed; i++) {  // (others of the run may write there)
    const Call& c = tb->calls[i];
    uint64_t a[6] = {c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], c.args[5]};
    if (c.flags & UsesText) a[1] = address(c.text);
    if (c.flags & UsesDescriptor) a[c.nr == SYS_close ? 0 : 4] = uint64_t(descriptor);
    result = sys(c.nr, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (c.flags & Opens) descriptor = result;
    if (is_error(result) && !(c.flags & Optional)) failed = i + 1;
  }
  if (failed && descriptor >= 0) sys(SYS_close, uint64_t(descriptor));
  r.calls = 0;
  to_words(CalledRequest{failed, result}, r.args);
}

}  // namespace

void ask_as(ThreadBlock* tb, Request kind) {
  RequestBlock& r = tb->request;
  call_hook(tb, &Hooks::wait_begins);
  r.calls = 0;
  post(tb, kind);
  wait(tb);
  while (r.calls) {
    make_calls(tb);
    post(tb, CalledRequest::kind);
    wait(tb);
  }
  __atomic_store_n(&r.state, RequestState::Idle, __ATOMIC_RELAXED);
  call_hook(tb, &Hooks::wait_ends);
}

void tell(ThreadBlock* tb, const ThreadEndRequest& request) { post(tb, request.kind); }

void die(const char* why) {
  char line[128] = "weir: the program ends: ";
  uint64_t n = 24;
  for (; *why && n < sizeof line - 1; why++) line[n++] = *why;
  line[n++] = '\n';
  sys(SYS_write, 2, address(line), n);
  for (;;) sys(SYS_exit_group, 125);
}

uint64_t block_signals(ThreadBlock* tb) {
  uint64_t all = all_signals, before = 0;
  if (tb->quiet) return before;
  sys(SYS_rt_sigprocmask, 2, address(&all), address(&before), 8);
  if (tb->signal_pending) return tb->pending_mask;  // one that was kept has blocked them already,
  return tb->exit_unmask ? tb->exit_mask : before;  // … or a door has
}

void unblock_signals(ThreadBlock* tb, uint64_t mask) {
  if (tb->quiet) return;
  tb->exit_mask = mask;
  tb->exit_unmask = 1;
}

namespace {
bool copy(int64_t nr, const void* local, const void* remote, uint64_t size) {
  struct {
    const void* base;
    uint64_t size;
  } here{local, size}, there{remote, size};
  return sys(nr, uint64_t(sys(SYS_gettid)), address(&here), 1, address(&there), 1, 0) ==
         int64_t(size);  // (the first thread may have ended)
}
}  // namespace

// Through the kernel, which says EFAULT where we would crash.
bool read_memory(const void* from, void* to, uint64_t size) { return copy(SYS_process_vm_readv, to, from, size); }
bool write_memory(void* to, const void* from, uint64_t size) { return copy(SYS_process_vm_writev, from, to, size); }

namespace {
// The vsyscall page: three system calls at fixed addresses, for programs of another time. The kernel would return to the program itself.
bool call_vsyscall(ThreadBlock* tb) {
  constexpr uint64_t page = 0xffff'ffff'ff60'0000;
  constexpr int64_t calls[] = {96, 201, 309};  // gettimeofday, time, getcpu
  uint64_t which = (tb->target - page) / 0x400;
  if (tb->target < page || tb->target % 0x400 || which > 2) return false;
  uint64_t* r = tb->regs.gpr;
  r[0] = uint64_t(calls[which]);
  begin_told_call(tb, tb->target);
  r[0] = uint64_t(sys(calls[which], r[7], r[6], r[2]));
  end_told_call(tb, tb->target);
  uint64_t return_address = *reinterpret_cast<uint64_t*>(r[4]);
  r[4] += 8;
  tb->regs.pc = ask(tb, ResumeRequest{return_address, Resuming::Anywhere}).pc;
  return true;
}

// What a far return pops, which was read just now. One that the processor refuses faults itself.
void pop_far(ThreadBlock* tb, GoOn& to) {
  constexpr uint16_t code_selector = 0x33, code_selector_32 = 0x23, data_selector = 0x2b;
  const auto* popped = reinterpret_cast<const uint64_t*>(tb->regs.gpr[4]);
  auto cs = uint16_t(popped[1]);
  if (cs == code_selector_32) die("it returns to 32-bit code, which is not supported");
  if (cs != code_selector || (to.pops == Pops::Interrupt && uint16_t(popped[4]) != data_selector)) {
    to.native = NativeSite;
    to.pc = uint64_t{1} << 63;
    return;
  }
  tb->regs.gpr[4] = to.pops == Pops::Interrupt ? popped[3] : tb->regs.gpr[4] + 16;
  if (to.pops == Pops::Interrupt) tb->regs.flags = popped[2];
}
}  // namespace

namespace {
// Where code goes on that has a twin; 0: ask.
uint64_t find_twin(const ThreadBlock* tb, uint64_t pc) {
  const auto* t = reinterpret_cast<const TwinTable*>(twins_base);
  if (pc >> 47) return 0;
  uint64_t key = twin_key(pc, tb->code_version);
  uint64_t version = __atomic_load_n(&t->version, __ATOMIC_ACQUIRE), mask = __atomic_load_n(&t->mask, __ATOMIC_RELAXED);
  if (!mask || version % 2) return 0;
  for (uint64_t i = twin_place(key, mask), left = 64; left; i = (i + 1) & mask, left--) {
    uint64_t other = __atomic_load_n(&t->places[i].key, __ATOMIC_ACQUIRE);
    if (!other) return 0;
    if (other != key) continue;
    uint64_t to = __atomic_load_n(&t->places[i].to, __ATOMIC_ACQUIRE);
    return __atomic_load_n(&t->version, __ATOMIC_RELAXED) == version ? to : 0;
  }
  return 0;
}
}  // namespace

extern "C" {

// A direct jump or call whose target was not translated when its own function was.
void rt_link(ThreadBlock* tb) { tb->regs.pc = ask(tb, LinkRequest{tb->exit_id}).pc; }

// An indirect jump, call or return whose target the table does not know: rcx has it, and the stack pointer is that to go on with. Or a far return.
// The program's rcx is in the slot.
void rt_indirect(ThreadBlock* tb) {
  bool is_miss = tb->regs.gpr[1] == tb->target;
  tb->regs.gpr[1] = tb->rcx;
  if (uint64_t to = is_miss ? find_twin(tb, tb->target) : 0) {
    tb->regs.pc = to;
    return;
  }
  tb->misses++;
  if (call_vsyscall(tb)) return;
  GoOn to = ask(tb, IndirectRequest{tb->exit_id, tb->target});
  if (to.pops != Pops::Little && to.native != NativeSite) pop_far(tb, to);
  if (to.native == NativeSite) tb->fault_pc = to.site;
  tb->regs.gpr[4] += to.stack_change;
  tb->regs.pc = to.pc;
}

// The rights that this thread's protection keys leave it, of a machine that has them.
static uint32_t set_rights(uint32_t rights) {
  uint32_t before;
  asm volatile("rdpkru" : "=a"(before) : "c"(0) : "edx");
  asm volatile("wrpkru" ::"a"(rights), "c"(0), "d"(0) : "memory");
  return before;
}

// A place in volatile code that is not what it was, that cannot be read, or where a signal waits; rcx holds its guard, the program's rcx is in
// the slot.
void rt_guard(ThreadBlock* tb) {
  const auto* guard = reinterpret_cast<const Guard*>(tb->regs.gpr[1]);
  tb->regs.gpr[1] = tb->rcx;
  uint32_t rights = guard->is_locked ? set_rights(0) : 0;
  tb->regs.pc = guard->cache_pc;
  bool same = true;
  for (const GuardedCode* code = guard->code; code->size && same; code++) {
    const auto* was = reinterpret_cast<const uint8_t*>(code->was);
    const auto* is = reinterpret_cast<const uint8_t*>(code->begin);
    for (uint64_t i = 0; i < code->size && same; i++) same = was[i] == is[i];
  }
  if (guard->is_locked) set_rights(rights);
  if (same) return;
  tb->regs.pc = ask(tb, StaleRequest{guard->app_pc, guard->cache_pc}).pc;
}

// It goes on at an exact place of the program, in the version that it is wanted in.
void rt_change_version(ThreadBlock* tb) { tb->regs.pc = ask(tb, ResumeRequest{tb->sent_from, Resuming::AtPoint}).pc; }

static void drain(ThreadBlock* tb) {
  if (tb->hooks && tb->hooks->buffer_is_full) return tb->hooks->buffer_is_full(tb);
  ask(tb, DrainRequest{});
  tb->buffer.next = tb->buffer.begin;
}

// A probe calls. rcx holds where to go on; the program's is in the slot, and the code there takes it back.
void rt_routine(ThreadBlock* tb) {
  uint64_t a = tb->routine_args[0], b = tb->routine_args[1], place = b << 32 | uint32_t(a);
  tb->regs.pc = tb->regs.gpr[1];
  switch (tb->exit_id) {
    case add_to_counter:
      if (a < max_counters) cells(tb)[a] += b;
      break;
    case empty_buffer: drain(tb); break;
    case CallBegins: begin_call(tb, uint32_t(a), uint32_t(b)); break;
    case CallsReturn: end_calls(tb, place); break;
    case StackMoves: move_stack(tb); break;
    case call_begins_routine: begin_told_call(tb, place); break;
    case call_ends_routine: end_told_call(tb, place); break;
    default: call_hook(tb, &Hooks::routine, tb->exit_id, a, b);
  }
}

}  // extern "C"

}  // namespace weir::rt
