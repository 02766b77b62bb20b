// The virtual clock, as the runtime reads and sets it.
#pragma once

#include "rt/abi.h"

namespace weir::rt {

inline uint64_t* cells(ThreadBlock* tb) {
  return reinterpret_cast<uint64_t*>(reinterpret_cast<char*>(tb) + counters_offset);
}

// (The runtime uses no other vector register, so xmm31 is what translated code left there.)
[[gnu::always_inline]] inline Times now(ThreadBlock* tb) {
  Times t;
  if (tb->clock.is_in_register) {
    asm volatile("vmovq %%xmm31, %0\n\tvpextrq $1, %%xmm31, %1" : "=r"(t.clock), "=r"(t.self));
    return t;
  }
  t.clock = cells(tb)[0] + cells(tb)[1];
  t.self = t.clock + tb->clock.self_bias;
  return t;
}

inline void set_clock(ThreadBlock* tb, Times t) {
  if (tb->clock.is_in_register) {
    asm volatile("vmovdqu64 %0, %%xmm31" : : "m"(t));
    return;
  }
  cells(tb)[0] = t.clock - cells(tb)[1];
  tb->clock.self_bias = t.self - t.clock;
}

[[gnu::always_inline]] inline void set_self_clock(ThreadBlock* tb, Times now, uint64_t self) {
  if (tb->clock.is_in_register) asm volatile("vpinsrq $1, %0, %%xmm31, %%xmm31" : : "r"(self));
  else tb->clock.self_bias = self - now.clock;
}

inline void advance(ThreadBlock* tb, uint64_t by) {
  Times t = now(tb);
  set_clock(tb, {t.clock + by, t.self + by});
}

}  // namespace weir::rt
