// Call frame information, compiled into the table that the walker searches (rt/unwind_table.h).
//
// All that a program's unwinder would do at each frame of each sample (find the FDE, run its instructions, evaluate an
// expression) is done here, once an image. What is left is a rule per range of addresses; ranges next to each other with
// the same rule become one.
#pragma once

#include <vector>

#include "elf/image.h"
#include "rt/unwind_table.h"

namespace weir::unwind {

struct Statistics {
  uint64_t fdes = 0, bad_fdes = 0;        // bad: their records could not be read
  uint64_t text = 0;                      // bytes of executable segments,
  uint64_t covered = 0, unsupported = 0;  // with a rule that is used, and with call frame information that is none
};

// `debug_frame` is a .debug_frame of the image or of its separate debug file, uncompressed (symbols::debug_frame_of); it
// answers where .eh_frame does not. Fails where the image's text is none that a table can describe: anything else that is
// wrong with it means fewer rules.
Result<std::vector<std::byte>> compile(const elf::Image& image, std::span<const std::byte> debug_frame = {},
                                       Statistics* statistics = nullptr);

}  // namespace weir::unwind
