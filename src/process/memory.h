// The memory of a process: its map, and its bytes.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/result.h"

namespace weir::process {

// A line of /proc/PID/maps.
struct Region {
  AppRange range;
  bool readable, writable, executable, shared;
  uint64_t offset;  // in the file
  uint64_t inode;
  std::string path;  // empty for anonymous memory; "[vdso]" …; a deleted file's has " (deleted)" behind it
};

Result<std::vector<Region>> regions(pid_t pid);

// Pages of a private mapping of a file that somebody has written to, so that they may differ from the file; an error where
// that cannot be told.
Result<std::vector<AppPc>> private_pages(pid_t pid, AppRange range);

// Reads as much of [address, address + out.size()) as can be read, from its begin; returns how much.
size_t read(pid_t pid, uint64_t address, std::span<std::byte> out);

}  // namespace weir::process
