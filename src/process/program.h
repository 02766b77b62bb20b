// What a process runs: its program, its images, and what it says of itself.
#pragma once

#include <memory>

#include "base/fd.h"
#include "elf/image.h"
#include "process/memory.h"

namespace weir::process {

// What /proc/PID/exe says.
std::string program_name(pid_t pid);
std::vector<std::string> command_of(pid_t pid);

// The image that a region of the process is mapped from. Each is opened once.
Result<std::shared_ptr<elf::Image>> open_image(pid_t pid, const Region& region);
Result<std::shared_ptr<elf::Image>> open_image(Fd file, const std::string& path);
// What to add to an address as the file has it; of executable regions.
uint64_t bias_of(const Region& region, const elf::Image& image);

// What a just-in-time compiler calls its code, in a file that perf established. `own_pid` is how the process knows itself, `started` when
// it began, in microseconds since 1970.
Fd open_perf_map(pid_t pid, pid_t own_pid, int64_t started);

// The id in the innermost namespace: how the process or thread knows itself. 0: it is gone.
pid_t own_id(pid_t id);

bool is_stopped(pid_t pid);
// Stops this process, as `pid` was: until somebody continues either.
void stop_with(pid_t pid);

int64_t microseconds_now();

}  // namespace weir::process
