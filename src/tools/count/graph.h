// How the blocks of one function lead to each other, as far as their last instructions say so: the blocks that ran, numbered from 0 in the
// order of their places.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profile/profile.h"

namespace weir::count {

// The blocks of a function in a profile: they stand together.
struct CodeOf {
  const profile::Profile& profile;
  uint32_t first = 0, end = 0;
};

// A block leads to a place.
struct Lead {
  uint64_t to;
  uint32_t block;
};
// `last`: the length of each block's last instruction. Sorted by place.
std::vector<Lead> leads_of(const CodeOf& code, std::span<const uint8_t> last, std::vector<uint32_t>& indirect);

class Graph {
 public:
  // `has_run` by block of the profile.
  Graph(const CodeOf& code, std::span<const Lead> leads, std::span<const uint32_t> indirect,
        const std::vector<bool>& has_run);
  static constexpr uint32_t most_blocks = 8192;  // (who comes after whom takes a bit for two)

  uint32_t number_of(uint32_t block) const { return number_[block - first_]; }  // profile::none: it never ran
  bool is_small() const { return next_.size() <= most_blocks; }
  // One comes after the other, without going round a loop.
  bool are_in_line(uint32_t a, uint32_t b) const { return comes_after(a, b) || comes_after(b, a); }
  uint32_t loop_of(uint32_t block) const { return inner_[block]; }  // the innermost; none: it is in no loop
  bool is_in(uint32_t loop, uint32_t outer) const;                  // none is around all
  // A block decides at the end of a round whether its innermost loop goes on: it does not run before the first one.
  bool decides(uint32_t block) const;

 private:
  void sort();
  void find_loops();
  bool comes_after(uint32_t a, uint32_t b) const { return after_[size_t{a} * words_ + b / 64] >> (b % 64) & 1; }
  bool is_back(uint32_t from, uint32_t to) const { return place_[from] <= place_[to]; }

  uint32_t first_;
  std::vector<uint32_t> number_;  // by block, from the first
  std::vector<uint8_t> ways_;     // that a block may go on, taken or not
  std::vector<std::vector<uint32_t>> next_, previous_;
  std::vector<std::pair<uint32_t, uint32_t>> back_;  // edges that close a loop
  std::vector<uint32_t> place_;                      // in the order in which a search leaves them: successors first
  std::vector<uint32_t> order_;
  size_t words_ = 0;
  std::vector<uint64_t> after_;          // bits: who comes after whom
  std::vector<uint32_t> inner_, outer_;  // of a block, its loop; of a loop, the one around it
};

}  // namespace weir::count
