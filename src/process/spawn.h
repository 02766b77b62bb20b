// A program's beginning and end, as a shell sees them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "process/tracee.h"

namespace weir::process {

// Starts the command. It is traced by the caller, and stands still in front of its first instruction. `prepare` is called in the new
// process before.
Result<Tracee> spawn(const std::vector<std::string>& command, const std::function<void()>& prepare);

// What $? would be, of a status of waitpid().
int shell_status(int status);

}  // namespace weir::process
