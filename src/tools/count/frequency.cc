#include "tools/count/frequency.h"

#include <algorithm>
#include <span>

namespace weir::count {

using x86::Block;
using x86::BlockEnd;
using x86::BlockId;
using x86::no_block;

namespace {

constexpr float rounds = 8;           // of a loop
constexpr float jumps_ahead = 0.3f;   // of branches: compilers let the usual way fall through
constexpr int most_nested = 64;       // loops that are looked at
constexpr float from_outside = 0.3f;  // to a block that control comes to in an unknown way

// The loops, found in one walk in depth (Wei, Mao, Zou, Chen: "A new algorithm for identifying loops in decompilation").
class Shape {
 public:
  explicit Shape(const x86::Function& f) : f_(f), nodes_(f.blocks.size()) {
    for (AppPc pc : f.jump_targets)
      if (BlockId b = f.block_at(pc); b != no_block) cases_.push_back(b);
    order_.reserve(nodes_.size());
    if (BlockId b = f.block_at(f.entry); b != no_block) walk(b);
    for (BlockId b = 0; b < nodes_.size(); b++)
      if (!nodes_[b].is_visited) walk(b);
    std::ranges::reverse(order_);
  }

  std::span<const BlockId> order() const {
    return order_;
  }  // each before those that it leads to, but for the way round a loop
  bool is_header(BlockId b) const { return nodes_[b].is_header; }
  bool leaves_loop(BlockId from, BlockId to) const {
    BlockId loop = nodes_[from].is_header ? from : nodes_[from].header;
    if (loop == no_block) return false;
    for (int n = 0; n < most_nested && to != no_block; n++, to = nodes_[to].header)
      if (to == loop) return false;
    return true;
  }
  // The blocks that an indirect jump leads to. (Of several jumps the first stands for all.)
  std::span<const BlockId> cases_of(BlockId b) const { return b == switch_ ? cases_ : std::span<const BlockId>{}; }

 private:
  struct Node {
    BlockId header = no_block;  // of the innermost loop that it is in
    uint32_t depth = 0;         // on the way that is walked, from 1
    bool is_visited = false, is_header = false;
  };
  struct Step {
    BlockId block;
    size_t next;
  };

  // The n-th block that control goes to.
  BlockId successor(BlockId b, size_t n) const {
    const Block& block = f_.blocks[b];
    if (auto cases = cases_of(b); n < cases.size()) return cases[n];
    if (n == 0) return block.fallthrough != no_block ? block.fallthrough : block.taken;
    return n == 1 && block.fallthrough != no_block ? block.taken : no_block;
  }

  void put_into_loop(BlockId b, BlockId header) {
    if (b == header || header == no_block) return;
    for (int n = 0; nodes_[b].header != no_block; n++) {
      if (n == most_nested) return;
      BlockId outer = nodes_[b].header;
      if (outer == header) return;
      if (nodes_[outer].depth < nodes_[header].depth) {
        nodes_[b].header = header;
        b = header, header = outer;
      } else {
        b = outer;
      }
    }
    nodes_[b].header = header;
  }

  void walk(BlockId start) {
    std::vector<Step> way{{start, 0}};
    enter(start, 1);
    while (!way.empty()) {
      auto& [b, next] = way.back();
      BlockId s = successor(b, next++);
      if (s == no_block) {
        BlockId done = b;
        nodes_[done].depth = 0;
        order_.push_back(done);
        way.pop_back();
        if (!way.empty()) put_into_loop(way.back().block, nodes_[done].header);
      } else if (!nodes_[s].is_visited) {
        way.push_back({s, 0});
        enter(s, uint32_t(way.size()));
      } else if (nodes_[s].depth) {
        nodes_[s].is_header = true;
        put_into_loop(b, s);
      } else {
        BlockId h = nodes_[s].header;
        while (h != no_block && !nodes_[h].depth) h = nodes_[h].header;
        put_into_loop(b, h);
      }
    }
  }
  void enter(BlockId b, uint32_t depth) {
    nodes_[b].is_visited = true, nodes_[b].depth = depth;
    if (f_.blocks[b].ends == BlockEnd::IndirectJump && switch_ == no_block) switch_ = b;
  }

  const x86::Function& f_;
  std::vector<Node> nodes_;
  std::vector<BlockId> order_, cases_;
  BlockId switch_ = no_block;  // the indirect jump that the cases are reached by
};

}  // namespace

std::vector<float> guess_frequencies(const x86::Function& f) {
  Shape shape(f);
  std::vector<float> frequency(f.blocks.size());
  std::vector<bool> done(f.blocks.size());
  for (BlockId b : shape.order()) {
    const Block& block = f.blocks[b];
    float& own = frequency[b];
    if (block.begin == f.entry) own += 1;
    else if (block.is_entry && own == 0) own = from_outside;
    if (shape.is_header(b)) own = std::min(own * rounds, 1e6f);
    done[b] = true;
    auto pass = [&](BlockId to, float share) {
      if (to != no_block && !done[to]) frequency[to] += own * share;
    };
    if (block.ends == BlockEnd::IndirectJump) {
      for (BlockId to : shape.cases_of(b)) pass(to, 1 / static_cast<float>(shape.cases_of(b).size()));
    } else if (block.ends == BlockEnd::Branch) {
      float jumps = jumps_ahead;
      if (block.taken == no_block || block.fallthrough == no_block) jumps = 0.5f;
      else if (bool leaves = shape.leaves_loop(b, block.taken); leaves != shape.leaves_loop(b, block.fallthrough))
        jumps = leaves ? 1 / rounds : 1 - 1 / rounds;
      pass(block.taken, jumps), pass(block.fallthrough, 1 - jumps);
    } else {
      pass(block.fallthrough, 1), pass(block.taken, 1);
    }
  }
  return frequency;
}

}  // namespace weir::count
