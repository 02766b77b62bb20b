// What a process runs, and what it says of itself.
#pragma once

#include "base/fd.h"
#include "process/memory.h"

namespace weir::process {

// What /proc/PID/exe says.
std::string program_name(pid_t pid);
std::vector<std::string> command_of(pid_t pid);
// What a thread is called.
std::string thread_name(pid_t pid, pid_t tid);

// What a just-in-time compiler calls its code, in a file that perf established. `own_pid` is how the process knows itself, `started` when
// it began, in microseconds since 1970.
Fd open_perf_map(pid_t pid, pid_t own_pid, int64_t started);

// The id in the innermost namespace: how the process or thread knows itself. 0: it is gone.
pid_t own_id(pid_t id);

bool is_stopped(pid_t pid);
// Stops this process, as `pid` was: until somebody continues either.
void stop_with(pid_t pid);

int64_t microseconds_now();
// When the process began, in microseconds since 1970, to a hundredth of a second.
int64_t began(pid_t pid);

}  // namespace weir::process
