// A profile becomes a file: whole, or not at all.
#pragma once

#include <unistd.h>

#include <string>

#include "base/result.h"
#include "profile/profile.h"

namespace weir::store {

// Writes `profile` to `path`. An older file is kept as `path`.old; where anything fails, it stays as it is. `run` names the file that it is
// until it is whole (`path`.`run`.part): who writes it for a process that was killed uses the same name, and nothing is left.
Result<> write(const profile::Profile& profile, const std::string& path, pid_t run = getpid());

// The same; but where that fails (the disk is full, the directory is gone) it is written to another directory, as a new file, so that a long run
// is not lost.
struct Place {
  std::string file;
  std::string why;  // it is not `path`; empty: it is
};
Result<Place> write_somewhere(const profile::Profile& profile, const std::string& path, pid_t run = getpid());

// Could a profile be written there? To be asked before a long run.
Result<> check_writable(const std::string& path);

}  // namespace weir::store
