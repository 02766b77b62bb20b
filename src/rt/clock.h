// The virtual clock, for tools that ask for it (instrument::Services): what a thread's probes add up.
//
// On a processor with AVX-512 it is in xmm31, a register that hardly any program uses; elsewhere it is the sum of the first counters. It tells,
// too, how much of it belongs to the call that is under way: `self` advances as `clock` does, and is set back, when a call returns, to what it was
// when the call began.
#pragma once

#include <stdint.h>

namespace weir::rt {

struct Times {
  uint64_t clock, self;
};

// Of a thread.
struct ClockState {
  uint32_t is_in_register;
  uint32_t zmm31_offset;          // where zmm31 is in the extended state of a signal frame
  uint64_t self_bias;             // where the clock is in no register: Times::self less Times::clock
  Times away;                     // the clock, while the program has the register
  alignas(64) uint8_t zmm31[64];  // the program's, while the clock has it
};

// What it is advanced by, most often: the numbers from min_step on, side by side, so that they stay in the processor's cache.
constexpr uint32_t steps_offset = 48 << 10;
constexpr int64_t min_step = -256, step_count = 1024;

constexpr uint32_t clock_cells = 2;  // the first counters

}  // namespace weir::rt
