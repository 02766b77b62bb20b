// A profile becomes a file: whole, or not at all.
#pragma once

#include <string>

#include "base/result.h"
#include "profile/profile.h"

namespace weir::store {

// Writes `profile` to `path`. An older file is kept as `path`.old; where anything fails, it stays as it is.
Result<> write(const profile::Profile& profile, const std::string& path);

// Could a profile be written there? To be asked before a long run.
Result<> check_writable(const std::string& path);

}  // namespace weir::store
