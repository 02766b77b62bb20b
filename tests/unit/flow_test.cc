// Counters by spanning tree: random graphs, random walks, and what follows from the counters against what was walked.

#include "tools/count/flow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace weir::count {
namespace {

class Walker {
 public:
  Walker(uint32_t points, uint32_t blocks, uint64_t seed) : random_(seed), counts_(blocks) {
    for (uint32_t b = 0; b < blocks; b++) {
      // The first ones lead from point to point, through all of them.
      uint32_t from = b < points ? b : pick(points), to = b < points ? (b + 1) % points : pick(points);
      flows_.push_back({from, to, static_cast<float>(pick(4)), pick(100)});
    }
    place_counters(flows_, points);
  }

  // From the outside, and back there.
  void walk() {
    uint32_t at = outside;
    do {
      std::vector<uint32_t> ways;
      for (uint32_t b = 0; b < flows_.size(); b++)
        if (flows_[b].from == at) ways.push_back(b);
      uint32_t b = ways[pick(static_cast<uint32_t>(ways.size()))];
      counts_[b]++;
      cycles_ += flows_[b].cycles;
      if (flows_[b].is_counted) clock_ += flows_[b].advance;
      at = flows_[b].to;
    } while (at != outside);
    EXPECT_EQ(clock_, cycles_);
  }

  std::vector<Count64> counted() const {
    std::vector<Count64> result;
    for (size_t b = 0; b < flows_.size(); b++)
      result.push_back({flows_[b].from, flows_[b].to, flows_[b].is_counted ? counts_[b] : 0, flows_[b].is_counted});
    return result;
  }
  const std::vector<uint64_t>& counts() const { return counts_; }
  size_t counters() const { return static_cast<size_t>(std::ranges::count(flows_, true, &Flow::is_counted)); }

 private:
  uint32_t pick(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

  std::mt19937_64 random_;
  std::vector<Flow> flows_;
  std::vector<uint64_t> counts_;
  int64_t clock_ = 0, cycles_ = 0;
};

TEST(Flow, CountsAndClockOfRandomWalks) {
  for (uint64_t seed = 0; seed < 500; seed++) {
    auto points = static_cast<uint32_t>(1 + seed % 12), blocks = static_cast<uint32_t>(points + seed % 17);
    Walker walker(points, blocks, seed);
    EXPECT_EQ(walker.counters(), blocks - points + 1);
    for (int i = 0; i < 20; i++) walker.walk();
    auto solved = walker.counted();
    solve_counts(solved, points);
    for (size_t b = 0; b < solved.size(); b++) {
      EXPECT_TRUE(solved[b].is_known) << "seed " << seed;
      EXPECT_EQ(solved[b].count, walker.counts()[b]) << "seed " << seed << ", block " << b;
    }
  }
}

// A loop around two ways: one of them is counted, and one of the other two blocks at most.
TEST(Flow, HotBlocksAreNotCounted) {
  std::vector<Flow> flows = {{0, 1, 0, 5}, {1, 2, 3, 7}, {2, 1, 2, 1}, {2, 1, 2, 2}, {1, 0, 1, 4}};
  place_counters(flows, 3);
  EXPECT_FALSE(flows[1].is_counted);
  EXPECT_TRUE(flows[2].is_counted);
  EXPECT_TRUE(flows[3].is_counted);
  EXPECT_EQ(flows[2].advance, 8);
  EXPECT_EQ(flows[3].advance, 9);
}

// A thread that ended on its way: no count becomes negative.
TEST(Flow, UnfinishedWay) {
  std::vector<Count64> blocks = {{0, 1, 0, false}, {1, 2, 0, false}, {2, 0, 0, true}, {1, 0, 3, true}};
  solve_counts(blocks, 3);
  EXPECT_EQ(blocks[1].count, 0u);
  EXPECT_EQ(blocks[0].count, 3u);
}

}  // namespace
}  // namespace weir::count
