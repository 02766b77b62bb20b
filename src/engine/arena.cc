#include "engine/arena.h"

#include <algorithm>

namespace weir::engine {

namespace {
constexpr uint64_t reach = (uint64_t{2} << 30) - (64u << 20);  // of a 32-bit displacement, with some room
}

bool near(CachePc base, size_t size, AppRange r) {
  uint64_t low = std::min(base.value, r.begin.value), high = std::max(base.value + size, r.end.value);
  return high - low < reach;
}

uint32_t Arenas::add(Arena arena) {
  arenas_.push_back(std::move(arena));
  return static_cast<uint32_t>(arenas_.size() - 1);
}

Arena* Arenas::at(CachePc pc) {
  for (Arena& a : arenas_)
    if (a.contains(pc)) return &a;
  return nullptr;
}

Arena* Arenas::of_link(uint32_t number) {
  for (Arena& a : arenas_)
    if (number >= a.first_link && number - a.first_link < a.all_links()) return &a;
  return nullptr;
}

bool Arenas::has_free_links(uint32_t first, uint64_t count) const {
  return std::ranges::none_of(arenas_, [&](const Arena& a) {
    return first < uint64_t{a.first_link} + a.max_links && a.first_link < first + count;
  });
}

bool Arenas::has_room(AppRange range) const {
  return std::ranges::none_of(
      arenas_, [&](const Arena& a) { return a.base.value < range.end.value && range.begin.value < a.base.value + a.size; });
}

uint32_t Arenas::count_common() const {
  return static_cast<uint32_t>(std::ranges::count_if(arenas_, [](const Arena& a) { return !a.code.size(); }));
}

uint64_t Arenas::code_size() const {
  uint64_t size = 0;
  for (const Arena& a : arenas_) size += a.used - a.free_code.size();
  return size;
}

uint32_t unit_at(const Units& units, const Arena& arena, CachePc pc) {
  uint32_t offset = arena.offset_of(pc);
  auto u = std::upper_bound(arena.units.begin(), arena.units.end(), offset,
                            [&](uint32_t o, uint32_t id) { return o < units[id].offset; });
  return u == arena.units.begin() ? 0 : *std::prev(u) + 1;
}

}  // namespace weir::engine
