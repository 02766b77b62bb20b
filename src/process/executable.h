// Which file a command names, and why it cannot be run.
#pragma once

#include <string>

#include "base/result.h"

namespace weir::process {

// The file that execvp() would take. An error has the exit status that a shell would give: 127 not found, 126 not to be run.
Result<std::string> find_program(const std::string& name);

// Why execve() refused the file with `error`, in words that help.
Error exec_error(const std::string& file, int error);

}  // namespace weir::process
