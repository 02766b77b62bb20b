// .debug_frame: call frame information that is no part of the running program, for code that has no .eh_frame.
#pragma once

#include <vector>

#include "symbols/symbols.h"

namespace weir::symbols {

// Of the image or of its separate debug file, uncompressed; empty where there is none.
std::vector<std::byte> debug_frame_of(const std::string& path, const Options& options = {});

}  // namespace weir::symbols
