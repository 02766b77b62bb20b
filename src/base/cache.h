// Files that are kept for later runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace weir {

// $XDG_CACHE_HOME/weir or ~/.cache/weir, for us alone; empty where there is none.
std::string cache_directory();

// Not against malice: tells whether a file is what was written.
uint64_t checksum_of(std::span<const std::byte> bytes, uint64_t seed = 0);

}  // namespace weir
