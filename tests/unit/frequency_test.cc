// Guesses of how often blocks run: their order is what matters.

#include "tools/count/frequency.h"

#include <gtest/gtest.h>

#include <random>

namespace weir::count {
namespace {

using x86::BlockEnd;
using x86::BlockId;
using x86::no_block;

// Blocks of one byte each, side by side.
struct Blocks : x86::Function {
  Blocks() { entry = AppPc{0x1000}; }
  Blocks& add(BlockEnd ends, BlockId fallthrough = no_block, BlockId taken = no_block) {
    AppPc begin = entry + blocks.size();
    blocks.push_back({.begin = begin, .end = begin + 1, .ends = ends, .fallthrough = fallthrough, .taken = taken});
    return *this;
  }
};

TEST(Frequency, WhatIsInTheLoopRunsMost) {
  Blocks f;  // 0; do { 1 do { 2 } while; 3 } while; 4
  f.add(BlockEnd::FallThrough, 1)
      .add(BlockEnd::FallThrough, 2)
      .add(BlockEnd::Branch, 3, 2)
      .add(BlockEnd::Branch, 4, 1)
      .add(BlockEnd::Return);
  auto q = guess_frequencies(f);
  EXPECT_EQ(q[0], 1);
  EXPECT_GT(q[1], q[0]);
  EXPECT_GT(q[2], q[1]);
  EXPECT_LT(q[3], q[2]);
  EXPECT_NEAR(q[4], q[0], 0.01);
}

// What compilers put at the end and jumps back is no loop.
TEST(Frequency, OutOfLine) {
  Blocks f;  // if (0) goto 3; 1: 1; return 2;  3: goto 1
  f.add(BlockEnd::Branch, 1, 3).add(BlockEnd::FallThrough, 2).add(BlockEnd::Return).add(BlockEnd::Jump, no_block, 1);
  auto q = guess_frequencies(f);
  EXPECT_EQ(q[1], 1);
  EXPECT_EQ(q[2], 1);
  EXPECT_LT(q[3], 0.5f);
}

TEST(Frequency, CasesShareTheirJump) {
  Blocks f;  // for (;;) switch: 0 is the head, 1 … 4 go back there
  f.add(BlockEnd::IndirectJump);
  for (BlockId b = 1; b <= 4; b++)
    f.add(BlockEnd::Jump, no_block, 0), f.jump_targets.push_back(f.blocks[b].begin), f.blocks[b].is_entry = true;
  auto q = guess_frequencies(f);
  EXPECT_GT(q[0], 1);
  for (BlockId b = 1; b <= 4; b++) EXPECT_EQ(q[b], q[0] / 4);
}

// Any graph, loops with several ways in and loops in loops without end: an answer, soon, and of every block.
TEST(Frequency, AnyGraph) {
  std::mt19937_64 random(1);
  for (uint32_t n : {1u, 2u, 7u, 40u, 300u, 20000u}) {
    for (bool nested : {false, true}) {
      Blocks f;
      for (BlockId b = 0; b < n; b++) {
        BlockId next = b + 1 < n ? b + 1 : no_block;
        f.add(next == no_block ? BlockEnd::Jump : BlockEnd::Branch, next,
              nested ? n - 1 - b : static_cast<BlockId>(random() % n));
      }
      auto q = guess_frequencies(f);
      for (float x : q) EXPECT_TRUE(x >= 0 && x <= 1e8f) << n;
      EXPECT_EQ(q.size(), n);
    }
  }
}

}  // namespace
}  // namespace weir::count
