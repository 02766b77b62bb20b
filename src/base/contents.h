// All of a file, at a path that anybody may have written down.
#pragma once

#include <optional>
#include <string>

namespace weir {

// None: there is no such file, it cannot be read, is no regular file (a pipe, a terminal), or is larger than 64 MiB.
std::optional<std::string> contents_of(const std::string& path);

}  // namespace weir
