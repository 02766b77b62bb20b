// From a Profile to the rows of a new store.
#pragma once

#include "profile/profile.h"
#include "store/tables.h"

namespace weir::store {

void fill(Tables& tables, const profile::Profile& profile);

}  // namespace weir::store
