// From a Profile to the rows of an empty database.
#pragma once

#include "profile/profile.h"
#include "store/sqlite.h"

namespace weir::store {

Result<> fill(const Database& db, const profile::Profile& profile);

}  // namespace weir::store
