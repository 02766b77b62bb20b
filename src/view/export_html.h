// The page with its data inside, as one file: every question that it may ask is asked here, and the answers are packed.
#pragma once

#include "view/queries.h"

namespace weir::view {

// How much goes into a file; what is left out is told in it.
struct HtmlLimits {
  size_t functions = 5000;       // in lists, with callers and callees
  size_t code_bytes = 24 << 20;  // of source and disassembly, before packing
  size_t frames = 60'000;        // of a flame graph
  size_t file_bytes = 4 << 20;   // of whole source files
};

// `progress` is told the part that is done, from 0 to 1, many times.
Result<std::string> html_of(
    const Options& options, const HtmlLimits& limits, const std::function<void(double)>& progress = [](double) {});

}  // namespace weir::view
