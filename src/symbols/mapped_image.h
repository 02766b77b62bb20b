// The images that a process has mapped.
#pragma once

#include <memory>

#include "elf/image.h"
#include "process/memory.h"

namespace weir::symbols {

// The image that a region of the process is mapped from. Each is opened once.
Result<std::shared_ptr<elf::Image>> open_image(pid_t pid, const process::Region& region);
Result<std::shared_ptr<elf::Image>> open_image(Fd file, const std::string& path);
// The file of a region; none where it cannot be had, or is another by now.
Fd open_file(pid_t pid, const process::Region& region);
// What to add to an address as the file has it; of executable regions.
uint64_t bias_of(const process::Region& region, const elf::Image& image);

}  // namespace weir::symbols
