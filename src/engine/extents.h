// Stretches of numbers (bytes of an arena, ids of exits) that were in use and are free again.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>

namespace weir::engine {

class Extents {
 public:
  void give(uint32_t begin, uint32_t size) {
    if (!size) return;
    auto next = free_.lower_bound(begin);
    if (next != free_.end() && begin + size == next->first) {
      size += next->second;
      next = free_.erase(next);
    }
    if (next != free_.begin() && std::prev(next)->first + std::prev(next)->second == begin) std::prev(next)->second += size;
    else free_.emplace_hint(next, begin, size);
  }
  // `size` of them that lie side by side.
  std::optional<uint32_t> take(uint32_t size) {
    for (auto i = free_.begin(); i != free_.end(); ++i) {
      if (i->second < size) continue;
      auto [begin, had] = *i;
      free_.erase(i);
      give(begin + size, had - size);
      return begin;
    }
    return {};
  }

  uint64_t size() const {
    uint64_t sum = 0;
    for (auto [begin, size] : free_) sum += size;
    return sum;
  }

 private:
  std::map<uint32_t, uint32_t> free_;  // begin → size; no two touch
};

}  // namespace weir::engine
