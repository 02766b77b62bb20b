// As the kernel chooses the stack of a handler.

#include "rt/frame_stack.h"

namespace weir::rt {

namespace {

constexpr int32_t SS_DISABLE = 2;
constexpr uint32_t SS_AUTODISARM = 1u << 31;
constexpr uint64_t red_zone = 128;
constexpr uint64_t legacy_size = 512;

bool has_altstack(const UContext* uc) { return uc->stack_size && !(uc->stack_flags & SS_DISABLE); }

bool is_within(uint64_t address, const UContext* uc) { return address - uc->stack_sp <= uc->stack_size; }

}  // namespace

bool is_on_altstack(const UContext* uc, uint64_t rsp) {
  return has_altstack(uc) && !(uint32_t(uc->stack_flags) & SS_AUTODISARM) && rsp != uc->stack_sp && is_within(rsp, uc);
}

uint64_t altstack_of(const UContext* frame) {
  return has_altstack(frame) && is_within(address(frame), frame) ? frame->stack_sp : 0;
}

// As the kernel would have placed it: the extended state, and the frame below it.
UContext* on_right_stack(UContext* uc, uint64_t flags) {
  bool wants_altstack = (flags & SA_ONSTACK) && has_altstack(uc) && !is_on_altstack(uc, uc->rsp);
  bool has = has_altstack(uc) && is_within(address(uc), uc) && !is_on_altstack(uc, uc->rsp);
  if (wants_altstack == has) return uc;
  uint64_t top = wants_altstack ? uc->stack_sp + uc->stack_size : uc->rsp - red_zone;
  if (uc->fpstate) {
    const auto* state = reinterpret_cast<const Extended*>(uc->fpstate);
    uint64_t size = state->magic == extended_magic ? state->size : legacy_size;
    top = (top - size) & ~uint64_t{63};
    memcpy(reinterpret_cast<void*>(top), state, size);
    uc->fpstate = top;
  }
  auto* from = reinterpret_cast<SignalFrame*>(address(uc) - offsetof(SignalFrame, uc));
  auto* to = reinterpret_cast<SignalFrame*>(((top - sizeof(SignalFrame)) & ~uint64_t{15}) - 8);
  memcpy(to, from, sizeof *to);
  return &to->uc;
}

}  // namespace weir::rt
