// Which blocks need a counter. Blocks lead from point to point: a point is where control goes on in one of several blocks, whichever it
// came from, and what comes in goes out. So not all blocks must be counted: if those that are not form a tree of points, they follow
// from the others (Knuth; Ball and Larus call the rest chords). Control enters and leaves the function at point 0, the outside:
// calls, returns and system calls lead there.
//
// The clock is advanced where blocks are counted, by what passed since the last one: the way along the tree has a length for every
// point, so that uncounted blocks need nothing. At point 0, where others look at the clock, it is right.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weir::count {

constexpr uint32_t outside = 0;

struct Flow {
  uint32_t from, to;  // points
  float frequency;    // how often it runs, by a guess: what runs most is counted last
  int64_t cycles;
  bool is_counted = true;
  int64_t advance = 0;  // of the clock, where it is counted
};
// Sets is_counted and advance. The points are less than `points`.
void place_counters(std::span<Flow> blocks, uint32_t points);

// Counts of all blocks, of which some are known. (Each time that control left for good on its way from point to point, some may be one more or
// less than they were, and so below zero: the sum of count * cycles is what the clock was advanced by all the same.)
struct Count64 {
  uint32_t from, to;
  uint64_t count;
  bool is_known;
};
void solve_counts(std::span<Count64> blocks, uint32_t points);

}  // namespace weir::count
