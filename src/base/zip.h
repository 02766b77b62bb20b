// zlib, as far as Weir needs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace weir {

uint32_t crc32_of(std::span<const std::byte> bytes);

// As a gzip file, without name and time: the same bytes for the same data.
Result<std::string> gzipped(std::string_view data);

}  // namespace weir
