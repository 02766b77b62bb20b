// The rate of the time stamp counter, measured from when a program is begun: the later it is asked, the better it is known.
#pragma once

#include <time.h>
#include <x86intrin.h>

#include <cstdint>

namespace weir {

class TickRate {
 public:
  double per_nanosecond() const {
    Moment now = look();
    int64_t passed = now.nanoseconds - begin_.nanoseconds;
    return passed > 0 ? static_cast<double>(now.ticks - begin_.ticks) / static_cast<double>(passed) : 1;
  }

 private:
  struct Moment {
    uint64_t ticks;
    int64_t nanoseconds;
  };
  // The best of some: we may be interrupted between the two clocks.
  static Moment look() {
    Moment best{};
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 5; i++) {
      timespec t;
      uint64_t before = __rdtsc();
      clock_gettime(CLOCK_MONOTONIC_RAW, &t);
      uint64_t between = __rdtsc() - before;
      if (between >= least) continue;
      least = between;
      best = {before + between / 2, t.tv_sec * int64_t{1'000'000'000} + t.tv_nsec};
    }
    return best;
  }

  Moment begin_ = look();
};

}  // namespace weir
