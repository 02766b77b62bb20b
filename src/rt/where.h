// Where a cache pc is in the program.
#pragma once

#include "rt/runtime.h"

namespace weir::rt {

struct Spot {
  Place place;
  uint64_t app;
  uint64_t restore, spilled;
  uint64_t resume;  // cache pc; 0: it must be asked for
};
// From what Weir has said before, if it has; else it is asked.
Spot where(ThreadBlock* tb, uint64_t cache_pc);

// The system call at rt_allowed is one that Weir has sent the thread to, to change versions behind it.
bool is_sent_from_call(const ThreadBlock* tb);

}  // namespace weir::rt
