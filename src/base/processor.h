// What Weir itself uses of the processor beyond plain x86-64. Every choice by the processor is made here; WEIR_PROCESSOR=v2|v3|v4 makes Weir
// use only what processors of that level (x86-64-v2 …) have, so that all its ways can be run on one machine. The program sees the
// processor as it is: registers that Weir leaves alone may still be in use. (What code costs is another matter: see cost/model.h.)
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace weir {

// A part of the extended state (xsave) that the system has switched on, beyond the registers of x87 and SSE.
struct StateComponent {
  uint8_t number;
  uint32_t end;  // in the standard form of the area
};

struct Processor {
  bool has_fsgsbase = false;  // rdfsbase and its kin work, by the processor and by the kernel (v3)
  // AVX-512 with vectors of all lengths (v4): where zmm16 to zmm31 are in the extended state of a signal frame. 0: it has none.
  uint32_t high_zmm_offset = 0;
  bool has_wide_compares = false;  // of 64 bytes at once, into a mask: AVX-512BW (v4)
  // The kernel makes execute-only memory so; elsewhere a processor can read what it can execute. (At any level: it is the program's memory.)
  bool has_protection_keys = false;
  std::vector<StateComponent> state = {};  // by `end`; at any level, too
};

// With everything that this machine has up to a level; "": everything. Levels that do not exist, or that it lacks, are refused.
Result<Processor> processor_of_level(std::string_view level);

// Takes the level from the environment; to be called before the first processor().
Result<> choose_processor();
const Processor& processor();

}  // namespace weir
