// The body of a function: its instructions without what a new build or another place changes (addresses, distances of jumps). A function
// that got another name, or moved to another file, is found again by it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::store {

struct Body {
  uint32_t instructions = 0;
  uint64_t whole = 0;           // a hash of all instructions, with their registers and constants
  std::vector<uint64_t> parts;  // hashes of each instruction, and of each two in a row, without registers; sorted
};

// From the blocks of a function in the order of their offsets. (Blocks may overlap: each address counts once.)
class BodyReader {
 public:
  void add(uint64_t offset, std::span<const std::byte> bytes);
  Body end();

 private:
  Body body_;
  uint64_t next_ = 0, last_ = 0;
};

// 1: the same instructions; 0: none in common. Twice what both have, of what they have together (Dice's coefficient).
double similarity(const Body& a, const Body& b);

}  // namespace weir::store
