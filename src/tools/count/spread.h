// Time that is known of functions, and not of their calls: whose is it, of those that called them?
//
// Page faults are measured from outside, and nobody knows what the parallel stack was at that instant. With call paths, a function's time is shared
// out among its paths in proportion to what it computed on each. Without, it goes to the callers' records in proportion to their measured
// totals, and so on to their callers: exact where there is one record.
#pragma once

#include <span>

#include "profile/profile.h"

namespace weir::count {

struct OwnTime {
  uint32_t function = profile::none;
  profile::Cycles time = 0;
};

// What the shares are added to.
struct SpreadTo {
  profile::Cycles profile::Context::*path;
  profile::Cycles profile::CallCount::*call;
};

// The calls of `thread` have no duplicates.
void spread_to_callers(profile::Thread& thread, std::span<const profile::CallSite> sites, std::span<const OwnTime> own,
                       SpreadTo to);

}  // namespace weir::count
