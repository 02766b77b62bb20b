// What source files were at the end of the run, so that who reads them later is told when they are others.
#pragma once

#include <string_view>

#include "profile/profile.h"

namespace weir::profile {

// Fills `sources` with the files that lines and functions name, as far as they are here.
void note_sources(Profile& profile);

uint32_t hash_of_source(std::string_view text);

}  // namespace weir::profile
