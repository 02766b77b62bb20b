// The page (viewer/), built into the program as one HTML file.
#pragma once

#include <string_view>

namespace weir::view {

std::string_view page();

}  // namespace weir::view
