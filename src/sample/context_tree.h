// The calling-context tree of a thread, by function and call site, and what follows from it: the times of functions and calls.
#pragma once

#include <vector>

#include "base/index_table.h"
#include "profile/profile.h"

namespace weir::sample {

class ContextTree {
 public:
  // The context of `function`, called from `site` below `parent` (none: by nobody). Added if there is none.
  uint32_t child(uint32_t parent, uint32_t site, uint32_t function);
  void count(uint32_t context, uint64_t samples) { contexts_[context].self += samples; }

  // Fills `out` with the contexts and the counts of functions (of which there are so many) and calls. To be called once.
  void give(profile::Thread& out, size_t functions);

 private:
  std::vector<profile::Context> contexts_;
  IndexTable known_;
};

}  // namespace weir::sample
