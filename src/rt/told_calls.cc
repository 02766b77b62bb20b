#include "rt/told_calls.h"

#include "rt/signal_frame.h"

namespace weir::rt {

namespace {

constexpr uint64_t unknown_number = ~uint64_t{0};
constexpr uint8_t no_argument = 7;
constexpr uint64_t legacy_state_size = 512;

ToldCalls& calls_of(const ThreadBlock* tb) { return *reinterpret_cast<ToldCalls*>(address(tb) + told_calls_offset); }

bool is_told(const ThreadBlock* tb) {
  return tb->hooks && (tb->hooks->told_call_begins || tb->hooks->told_call_effect || tb->hooks->told_call_ends);
}

// Under a seccomp filter the runtime makes no call to read the program's memory.
bool refuse(const void*, void*, uint64_t) {
  const ThreadBlock* tb;
  asm("movq %%gs:0, %0" : "=r"(tb));
  calls_of(tb).was_refused = true;
  return false;
}
ReadMemory* reader(const ThreadBlock* tb) { return tb->quiet ? refuse : read_memory; }

struct Telling {
  ThreadBlock* tb;
  const ToldCall& call;

  void operator()(const Effect& e) const {
    calls_of(tb).unknown += e.use == Use::Unknown;
    call_hook(tb, &Hooks::told_call_effect, call, e);
  }
  void tell(Use use, uint64_t begin, uint64_t size) const { (*this)(Effect{use, no_argument, begin, size}); }
  void tell_unknown() const { tell(Use::Unknown, 0, 0); }
};

// Of a frame, what the kernel writes when it delivers a signal, and reads when the handler returns. It leaves out what has no meaning yet.
uint64_t size_of_state(const Extended& state) { return state.magic == extended_magic ? state.size : legacy_state_size; }

void tell_frame_read(const Telling& telling, uint64_t rsp) {
  constexpr uint64_t hole = offsetof(UContext, pad), behind_hole = offsetof(UContext, stack_size);
  telling.tell(Use::Read, rsp, hole);
  telling.tell(Use::Copied, rsp + hole, behind_hole - hole);
  telling.tell(Use::Read, rsp + behind_hole, offsetof(UContext, reserved) - behind_hole);
  telling.tell(Use::Read, rsp + offsetof(UContext, sigmask), sizeof UContext::sigmask);
  ReadMemory* read = reader(telling.tb);
  uint64_t state = 0;
  Extended head;
  if (!read(reinterpret_cast<void*>(rsp + offsetof(UContext, fpstate)), &state, sizeof state) || !state) return;
  if (read(reinterpret_cast<void*>(state), &head, offsetof(Extended, state_size)))
    telling.tell(Use::Read, state, size_of_state(head));
}

WaitingCall* find(ToldCalls& all, uint64_t pc, uint64_t rsp) {
  for (uint32_t i = all.count; i-- > 0;)
    if (all.waiting[i].pc == pc && all.waiting[i].rsp == rsp) return &all.waiting[i];
  return nullptr;
}

void erase(ToldCalls& all, uint32_t index) {
  all.count--;
  for (uint32_t i = index; i < all.count; i++) all.waiting[i] = all.waiting[i + 1];
}

// It never ends.
bool is_for_good(uint64_t number) { return number == SYS_exit || number == SYS_exit_group || number == SYS_rt_sigreturn; }

}  // namespace

void begin_told_call(ThreadBlock* tb, uint64_t pc) {
  if (!is_told(tb)) return;
  const uint64_t* r = tb->regs.gpr;
  uint64_t rsp = r[4];
  ToldCalls& all = calls_of(tb);
  all.told++, all.was_refused = false;
  if (WaitingCall* left = find(all, pc, rsp)) erase(all, uint32_t(left - all.waiting));
  if (all.count == max_waiting_calls) erase(all, 0);
  WaitingCall& waiting = all.waiting[all.count++];
  waiting = {pc, rsp, {uint32_t(r[0]), {r[7], r[6], r[2], r[10], r[8], r[9]}}, false, false};
  ToldCall told{ToldCall::Before, pc, waiting.call.number, waiting.call.arguments, 0};
  Telling telling{tb, told};
  call_hook(tb, &Hooks::told_call_begins, told);
  if (told.number == SYS_rt_sigreturn) tell_frame_read(telling, rsp);
  else for_each_effect(waiting.call, reader(tb), telling);
  if (all.was_refused) telling.tell_unknown();
  if (is_for_good(told.number)) all.count--;
}

void end_told_call(ThreadBlock* tb, uint64_t pc) {
  if (!is_told(tb)) return;
  ToldCalls& all = calls_of(tb);
  auto result = int64_t(tb->regs.gpr[0]);
  WaitingCall* found = find(all, pc, tb->regs.gpr[4]);
  if (!found) {
    all.without_begin++;
    ToldCall told{ToldCall::After, pc, unknown_number, nullptr, result};
    Telling{tb, told}.tell_unknown();
    return call_hook(tb, &Hooks::told_call_ends, told);
  }
  WaitingCall waiting = *found;
  all.count = uint32_t(found - all.waiting);
  if (waiting.is_dropped) return;
  all.was_refused = false;
  ToldCall told{ToldCall::After, pc, waiting.call.number, waiting.call.arguments, result};
  Telling telling{tb, told};
  if (waiting.is_late) for_each_effect(waiting.call, reader(tb), [](const Effect&) {});
  for_each_effect(waiting.call, result, reader(tb), telling);
  if (all.was_refused || waiting.is_late) telling.tell_unknown();
  call_hook(tb, &Hooks::told_call_ends, told);
}

void drop_call(ThreadBlock* tb, uint64_t pc, uint64_t rsp) {
  if (!is_told(tb)) return;
  if (WaitingCall* waiting = find(calls_of(tb), pc, rsp)) waiting->is_dropped = true;
}

void pass_calls_on(const ThreadBlock* tb, ThreadBlock* child) {
  if (!is_told(tb)) return;
  const ToldCalls& all = calls_of(tb);
  ToldCalls& its = calls_of(child);
  its.count = all.count;
  for (uint32_t i = 0; i < all.count; i++) its.waiting[i] = all.waiting[i];
  if (its.count) its.waiting[its.count - 1].rsp = child->regs.gpr[4];
}

void tell_frame(ThreadBlock* tb, int sig, UContext* uc) {
  if (!is_told(tb)) return;
  constexpr uint64_t hole = offsetof(SignalFrame, uc) + offsetof(UContext, pad),
                     behind_hole = offsetof(SignalFrame, uc) + offsetof(UContext, stack_size),
                     reserved = offsetof(SignalFrame, uc) + offsetof(UContext, reserved),
                     mask = offsetof(SignalFrame, uc) + offsetof(UContext, sigmask);
  ToldCall told{ToldCall::Frame, uc->rip, uint64_t(sig), nullptr, 0};
  Telling telling{tb, told};
  uint64_t begin = address(uc) - offsetof(SignalFrame, uc);
  telling.tell(Use::Written, begin, hole);
  telling.tell(Use::Written, begin + behind_hole, reserved - behind_hole);
  telling.tell(Use::Written, begin + mask, sizeof(SignalFrame) - mask);
  const auto* state = reinterpret_cast<const Extended*>(uc->fpstate);
  if (state) telling.tell(Use::Written, uc->fpstate, size_of_state(*state));
}

}  // namespace weir::rt
