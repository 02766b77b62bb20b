// What the times of a profile are, and which of them are seconds.
//
// A model's cycles are no seconds: no clock showed them, and the same code takes more or less of them than of the machine's. Seconds are what was
// measured: samples of time, wall time, and what OS calls took, whatever the clock of the code is.
#pragma once

#include "profile/profile.h"

namespace weir::profile {

inline const char* unit_of(const Run& run) {
  return run.sampling ? "samples" : run.clock == "instructions" ? "instructions" : "cycles";
}

// How many times of the code are a second; 0: they are none.
inline double units_per_second(const Run& run) {
  if (run.sampling) return run.sampling->rate;
  return run.clock == "wall" ? static_cast<double>(run.cycles_per_second) : 0;
}

// The same of OS calls.
inline double os_units_per_second(const Run& run) {
  return run.sampling ? run.sampling->rate : static_cast<double>(run.cycles_per_second);
}

}  // namespace weir::profile
