// Who started whom.
#pragma once

#include <span>
#include <vector>

#include "profile/profile.h"

namespace weir::profile {

// Fills Process::parent from the pids of their parents (0: none is known), one for each process.
void find_parents(std::vector<Process>& processes, std::span<const uint32_t> parents);

}  // namespace weir::profile
