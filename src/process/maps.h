// The text of /proc/PID/maps.
#pragma once

#include <string_view>

#include "process/memory.h"

namespace weir::process {

// Lines that are none end it. (Paths are the program's: anything but a newline may be in them.)
std::vector<Region> parse_maps(std::string_view text);

}  // namespace weir::process
