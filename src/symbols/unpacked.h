// Debug files of distributions are compressed: to inflate that of the C library takes longer than all else that a profile of a
// short program needs. So a copy with plain sections, without those that nobody here reads, is kept in the cache directory.
#pragma once

#include "symbols/object.h"

namespace weir::symbols {

// The copy, which is made if there is none; `debug` itself where it has nothing to unpack, or where nothing can be kept.
std::unique_ptr<Object> unpacked(std::unique_ptr<Object> debug);

}  // namespace weir::symbols
