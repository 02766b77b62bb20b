// Which file a command names, and why it cannot be run.
#pragma once

#include <string>

#include "base/result.h"

namespace weir::process {

// The file that execvp() would take. An error is NotFound or CannotRun, as a shell tells them apart.
Result<std::string> find_program(const std::string& name);

// Why execve() refused the file with `error`, in words that help.
Error exec_error(const std::string& file, int error);

}  // namespace weir::process
