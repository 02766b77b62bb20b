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
  bool readable = false, writable = false, executable = false, shared = false;
  uint64_t offset = 0;  // in the file
  uint64_t inode = 0;
  std::string path = {};  // empty for anonymous memory; "[vdso]" …; a deleted file's has " (deleted)" behind it
};

Result<std::vector<Region>> regions(pid_t pid);

// Pages of a private mapping of a file that somebody has written to, so that they may differ from the file; an error where
// that cannot be told.
Result<std::vector<AppPc>> private_pages(pid_t pid, AppRange range);

// A file of /proc, or an error where the process is gone by now. (A stream would throw there.)
Result<std::string> read_whole(const std::string& path);

// What /proc/PID/stat says, numbered as in proc(5), from 1 on; empty words where there is none.
enum StatField {
  StatState = 3,
  StatSystemTime = 15,
  StatStartTime = 22,
  StatStartCode = 26,
  StatEndCode,
  StatStartStack,
  StatStartData = 45,
  StatEndData,
  StatStartBrk,
  StatArgStart,
  StatArgEnd,
  StatEnvStart,
  StatEnvEnd,
  StatExitCode,
  stat_fields
};
struct Stat {
  std::string words[stat_fields];
  uint64_t number(int field) const { return strtoull(words[field].c_str(), nullptr, 10); }
};
Stat stat_of(pid_t pid);

// The process has its memory under the number of a thread that lives: its own, mostly, but the first thread may have ended.
pid_t living_thread(pid_t pid);

// Reads as much of [address, address + out.size()) as can be read, from its begin; returns how much.
size_t read(pid_t pid, uint64_t address, std::span<std::byte> out);
// The same of code, which need not be readable to be executed.
size_t read_code(pid_t pid, uint64_t address, std::span<std::byte> out);

}  // namespace weir::process
