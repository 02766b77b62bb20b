// Where the regions of a tool are (instrument::ToolRegion): for its runtime part.
//
// The same as long as the program lasts. Known from the program's first instruction on; hooks that are called before (wait_begins, of the first request)
// must not ask.
#pragma once

#include "rt/abi.h"

namespace weir::rt {

inline Range tool_region(uint32_t number) {
  return reinterpret_cast<const SpacePage*>(space_base)->tool_regions[number];
}

}  // namespace weir::rt
