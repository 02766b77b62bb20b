// Frames of signals. The kernel builds them: the runtime only mends what is in one.

#include "rt/signal_frame.h"

#include "rt/virtual_clock.h"

namespace weir::rt {

namespace {

// Where a frame keeps zmm31; null: nowhere. (The kernel writes all of the area, or, where all registers in it were zero, nothing.)
uint8_t* zmm31_of(ThreadBlock* tb, UContext* uc) {
  constexpr uint32_t first_in_area = 16, area_size = 1024;
  constexpr uint64_t area_bit = 1 << 7;
  auto* state = reinterpret_cast<Extended*>(uc->fpstate);
  uint64_t area = tb->clock.zmm31_offset - (31 - first_in_area) * 64;
  bool has_area = state && state->magic == extended_magic && (state->features & area_bit);
  if (!has_area || state->state_size < area + area_size) return nullptr;
  uint8_t* begin = reinterpret_cast<uint8_t*>(state);
  if (!(state->in_use & area_bit)) memset(begin + area, 0, area_size);
  state->in_use |= area_bit;
  return begin + tb->clock.zmm31_offset;
}

}  // namespace

uint64_t* frame_register(UContext* uc, unsigned n) {
  uint64_t* const in_order[16] = {&uc->rax, &uc->rcx, &uc->rdx, &uc->rbx, &uc->rsp, &uc->rbp, &uc->rsi, &uc->rdi,
                                  &uc->r8,  &uc->r9,  &uc->r10, &uc->r11, &uc->r12, &uc->r13, &uc->r14, &uc->r15};
  return in_order[n & 15];
}

void registers_to_frame(const Registers& r, UContext* uc) {
  for (unsigned i = 0; i < 16; i++) *frame_register(uc, i) = r.gpr[i];
  uc->eflags = r.flags;
  uc->rip = r.pc;
}

void registers_from_frame(const UContext* uc, Registers& r) {
  for (unsigned i = 0; i < 16; i++) r.gpr[i] = *frame_register(const_cast<UContext*>(uc), i);
  r.flags = uc->eflags;
}

void take_clock(ThreadBlock* tb, UContext* uc, bool is_away) {
  if (!tb->clock.is_in_register) return;
  Times clock = tb->clock.away;
  uint8_t* saved = zmm31_of(tb, uc);
  if (saved && !is_away) {
    memcpy(&clock, saved, sizeof clock);
    memcpy(saved, tb->clock.zmm31, sizeof tb->clock.zmm31);
  }
  memset(tb->clock.zmm31, 0, sizeof tb->clock.zmm31);
  set_clock(tb, clock);
}

void return_clock(ThreadBlock* tb, UContext* uc) {
  if (!tb->clock.is_in_register) return;
  Times clock = now(tb);
  uint8_t* saved = zmm31_of(tb, uc);
  if (!saved) {  // a frame of the program's own making: all vector registers will be zero
    memset(tb->clock.zmm31, 0, sizeof tb->clock.zmm31);
    return call_hook(tb, &Hooks::clock_restarts, clock);
  }
  memcpy(tb->clock.zmm31, saved, sizeof tb->clock.zmm31);
  memset(saved, 0, sizeof tb->clock.zmm31);
  memcpy(saved, &clock, sizeof clock);
}

}  // namespace weir::rt
