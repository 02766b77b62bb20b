#include "tools/count/flow.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace weir::count {

namespace {

// Sets of points, and how far each is from the first of its set.
class Distances {
 public:
  explicit Distances(uint32_t points) : parent_(points), distance_(points) { std::iota(parent_.begin(), parent_.end(), 0); }

  uint32_t first(uint32_t p) {
    uint32_t root = p;
    int64_t whole = 0;
    for (; parent_[root] != root; root = parent_[root]) whole += distance_[root];
    while (parent_[p] != root && p != root) {  // next time it is one step
      int64_t step = distance_[p];
      distance_[p] = whole;
      whole -= step;
      p = std::exchange(parent_[p], root);
    }
    return root;
  }
  int64_t distance(uint32_t p) {
    uint32_t root = first(p);
    return p == root ? 0 : distance_[p];
  }
  // False: they are connected already.
  bool connect(uint32_t from, uint32_t to, int64_t length) {
    uint32_t a = first(from), b = first(to);
    if (a == b) return false;
    distance_[b] = distance(from) + length - distance(to);
    parent_[b] = a;
    return true;
  }

 private:
  std::vector<uint32_t> parent_;
  std::vector<int64_t> distance_;  // from the parent
};

}  // namespace

void place_counters(std::span<Flow> blocks, uint32_t points) {
  std::vector<uint32_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater{}, [&](uint32_t b) { return blocks[b].frequency; });
  Distances distances(points);
  for (uint32_t b : order) blocks[b].is_counted = !distances.connect(blocks[b].from, blocks[b].to, blocks[b].cycles);
  for (Flow& b : blocks)
    if (b.is_counted) b.advance = distances.distance(b.from) + b.cycles - distances.distance(b.to);
}

// A point with one unknown block says what that is; and so on from there.
void solve_counts(std::span<Count64> blocks, uint32_t points) {
  struct Point {
    uint64_t surplus = 0;              // what came in and did not go out
    uint32_t unknown = 0, blocks = 0;  // how many are not known, and all of these in one word
  };
  std::vector<Point> at(points);
  auto add = [&](const Count64& b) { at[b.to].surplus += b.count, at[b.from].surplus -= b.count; };
  auto toggle = [&](uint32_t i, uint32_t by) {
    for (uint32_t p : {blocks[i].from, blocks[i].to}) at[p].unknown += by, at[p].blocks ^= i;
  };
  for (uint32_t i = 0; i < blocks.size(); i++)
    if (blocks[i].is_known) add(blocks[i]);
    else toggle(i, 1);
  for (uint32_t start = outside + 1; start < points; start++)
    for (uint32_t p = start; p != outside && at[p].unknown == 1;) {
      uint32_t i = at[p].blocks;
      Count64& b = blocks[i];
      b.count = b.from == p ? at[p].surplus : -at[p].surplus;
      b.is_known = true;
      toggle(i, -1u);
      add(b);
      p = b.from == p ? b.to : b.from;
    }
}

}  // namespace weir::count
