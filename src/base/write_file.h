// A result that a user names: -o FILE, --json FILE.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace weir {

using Sink = std::function<void(std::string_view)>;
using Writer = std::function<Result<>(const Sink&)>;

// "PATH: cannot be written: why; what to do about it", by errno.
std::unexpected<Error> cannot_write(const std::string& path);

// An older file stays until this one is whole. What is no file (a pipe, /dev/stdout), or in a directory that is not ours to write to, is
// written to as it is, once there is something to write. `run` tells apart those who write at the same time.
Result<> write_file(const std::string& path, pid_t run, const Writer& write);

Result<> write_stdout(const Writer& write);

}  // namespace weir
