// Finds an element of a vector by its contents: a hash table of indices that stands beside the vector. Open addressing, one
// allocation; what the key is, and how it is hashed, is the caller's affair.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace weir {

class IndexTable {
 public:
  // The index of the element with this hash that `is_it` agrees to; where there is none `next`, which is remembered.
  template <class IsIt>
  uint32_t find_or_add(uint32_t hash, uint32_t next, IsIt is_it) {
    if ((size_ + 1) * 2 > slots_.size()) grow(slots_.size() * 2);
    size_t i = first_slot(hash);
    for (; slots_[i].index != empty; i = (i + 1) & (slots_.size() - 1))
      if (slots_[i].hash == hash && is_it(slots_[i].index)) return slots_[i].index;
    slots_[i] = {hash, next};
    size_++;
    return next;
  }
  // Room for so many.
  void reserve(size_t elements) {
    if (elements * 2 > slots_.size()) grow(std::bit_ceil(elements * 2));
  }

 private:
  static constexpr uint32_t empty = UINT32_MAX;
  struct Slot {
    uint32_t hash = 0, index = empty;
  };

  size_t first_slot(uint32_t hash) const { return hash & (slots_.size() - 1); }
  void grow(size_t slots) {
    std::vector<Slot> old = std::move(slots_);
    slots_.assign(std::max<size_t>(1024, slots), {});
    for (Slot s : old) {
      if (s.index == empty) continue;
      size_t i = first_slot(s.hash);
      while (slots_[i].index != empty) i = (i + 1) & (slots_.size() - 1);
      slots_[i] = s;
    }
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

// A hash of two numbers, whose low bits are as good as the high ones.
inline uint32_t hash_of(uint64_t a, uint64_t b) {
  uint64_t h = (a * 0x9E3779B97F4A7C15ull ^ b) * 0xD6E8FEB86659FD93ull;
  return static_cast<uint32_t>(h >> 32);
}

}  // namespace weir
