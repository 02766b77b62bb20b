// The cycles of a block, from the figures of its instructions.
//
//   cycles   = max(dispatch, ports, chain), at least 1 for a block that has instructions
//   dispatch = Σ micro_ops(i) / width
//   ports    = max over resources r of  Σ uses(i, r) / capacity(r)
//   chain    = max over i that execute of  start(i) + 1,  and over i that hold back others of  start(i) + holds(i)
//   start(i) = max over units u that i reads of  ready(u) − advance(i, u),  and over all j before i of  start(j) + holds(j)
//   ready(u) = start(j) + latency(j, u), where j is the last instruction before i that writes u; 0: it came with the block
//
// What executes has a latency or uses a resource: a nop, an eliminated move and a zero idiom have neither.
//
// A block runs once each time, between others that an out-of-order CPU overlaps it with. So what counts is what is felt
// *inside* it: `chain` is when its last instruction can start. A load costs its latency if something in the block waits for
// it, and one cycle at most if nothing does. `dispatch` and `ports` are what the block takes away from its neighbours: they
// are counted in full. Micro-ops that can go to several ports use the group of these; the groups' loads are exact
// bounds (Hall's theorem), as long as the model has a group for every set of ports that is crowded together.
//
// Each bound grows with every instruction, so the cycles of the beginnings of a block do, too: `so far` minus `so far` one
// before is what an instruction adds, and the sum over all instructions is the block. Bounds are rounded to nearest: the
// maximum of the rounded is the rounded maximum.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "cost/descriptor.h"

namespace weir::cost {

struct Bounds {
  uint32_t dispatch = 0, ports = 0, chain = 0;

  uint32_t cycles() const { return std::max({dispatch, ports, chain}); }
};

class BlockSum {
 public:
  explicit BlockSum(const Cpu& cpu) : cpu_(&cpu) {}

  void clear();
  // The next instruction, whose figures are these.
  void add(const Descriptor& d, std::span<const Figure> figures);
  const Bounds& bounds() const { return bounds_; }

 private:
  const Cpu* cpu_;
  Bounds bounds_;
  uint32_t micro_ops_ = 0, held_ = 0;
  std::array<uint32_t, max_resources> load_{};
  // Times of all blocks follow each other on one clock, so that a new block need not forget when the units were ready in
  // those before: this one began at `begin_`, and nothing before was ready later.
  uint32_t begin_ = 0, latest_ = 0;
  std::array<uint32_t, max_units> ready_{};
};

}  // namespace weir::cost
