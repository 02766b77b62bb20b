// Addresses are types: a place in the program is not a place in the code cache, and neither is a number.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace weir {

template <class Tag>
struct Address {
  uint64_t value = 0;

  friend constexpr auto operator<=>(Address, Address) = default;
  constexpr Address operator+(int64_t n) const { return {value + static_cast<uint64_t>(n)}; }
  constexpr int64_t operator-(Address other) const { return static_cast<int64_t>(value - other.value); }
  constexpr Address& operator+=(int64_t n) { return *this = *this + n; }
  explicit constexpr operator bool() const { return value != 0; }
};

// An address in the program as its author knows it: what a native run would have in its registers.
using AppPc = Address<struct AppTag>;
// An address in the code cache, as the target sees it.
using CachePc = Address<struct CacheTag>;

// A half-open range of addresses.
template <class A>
struct Range {
  A begin, end;

  constexpr bool contains(A a) const { return begin <= a && a < end; }
  constexpr bool covers(Range o) const { return begin <= o.begin && o.end <= end; }
  constexpr bool overlaps(Range r) const { return begin < r.end && r.begin < end; }
  constexpr uint64_t size() const { return end.value - begin.value; }
  friend constexpr auto operator<=>(Range, Range) = default;
};
using AppRange = Range<AppPc>;

}  // namespace weir

template <class Tag>
struct std::hash<weir::Address<Tag>> {
  size_t operator()(weir::Address<Tag> a) const noexcept { return a.value * 0x9E3779B97F4A7C15ull >> 13; }
};
