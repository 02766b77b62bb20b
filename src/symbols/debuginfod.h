// Debug files from debuginfod servers, when the user has named some.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/fd.h"

namespace weir::symbols {

struct Download {
  Fd fd;
  std::string path;  // in the cache of libdebuginfod
};

// The debug file with this build-id (hexadecimal). Nothing where DEBUGINFOD_URLS is not set, no server has the file, or
// this process has spent `limit` on downloads. `what` is named on the progress line, which only a terminal gets.
std::optional<Download> download_debug_file(const std::string& build_id, const std::string& what,
                                            std::chrono::milliseconds limit);

}  // namespace weir::symbols
