// The calling-context tree of a thread, level by level: the children of a node stand together, the one with the largest
// total first. So a viewer gets the first ten children of any node as ten neighbouring rows.
#pragma once

#include <cstdint>
#include <vector>

#include "profile/profile.h"

namespace weir::store {

struct OrderedContext {
  uint32_t original;                // index in the vector that was given
  uint32_t parent = profile::none;  // these two in the new order
  uint32_t first_child = 0;
  uint32_t children = 0;
  profile::Cycles total = 0;  // self and descendants
  profile::Cycles os_time_total = 0;
  profile::Cycles waited_total = 0;
};

std::vector<OrderedContext> order_contexts(const std::vector<profile::Context>& contexts);

}  // namespace weir::store
