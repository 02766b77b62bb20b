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

// Could a profile be written there? To be asked before a long run.
Result<> check_writable(const std::string& path);

}  // namespace weir::store
