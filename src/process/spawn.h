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

// How we are to end, of a status of waitpid(): the exit status, or `by_signal` and a signal.
constexpr int by_signal = 256;
int own_end(int status);
// At once. What ended the program ends us, too: a shell looks at that, and stops a loop for SIGINT.
[[noreturn]] void end_as(int end);

}  // namespace weir::process
