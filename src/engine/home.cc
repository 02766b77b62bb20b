#include "engine/home.h"

#include <elf.h>

#include <algorithm>
#include <bit>

#include "base/cache.h"

namespace weir::engine {

namespace {
constexpr uint64_t page = 4096;
constexpr uint64_t max_extent = 512u << 20;

AppPc home(uint64_t k) { return {rt::home_base + (k << 32) + home_distance + k * home_slot_size}; }
}  // namespace

elf::VRange extent_of(const elf::Image& image) {
  uint64_t begin = UINT64_MAX, end = 0;
  for (const elf::Segment& s : image.segments()) {
    if (s.type != PT_LOAD) continue;
    begin = std::min(begin, s.vaddr.value & ~(page - 1));
    end = std::max(end, (s.vaddr.value + s.memory_size + page - 1) & ~(page - 1));
  }
  return begin < end ? elf::VRange{{begin}, {end}} : elf::VRange{};
}

std::optional<AppPc> home_of(const elf::Image& image, uint64_t attempt) {
  elf::VRange extent = extent_of(image);
  if (extent.begin.value || !extent.size() || extent.size() > max_extent) return {};
  uint64_t align = home_slot_size;
  for (const elf::Segment& s : image.segments())
    if (s.type == PT_LOAD) align = std::max(align, s.align);
  if (!std::has_single_bit(align) || align > max_extent) return {};
  std::string name = image.build_id();
  if (name.empty()) name = image.path();
  uint64_t slots = (extent.size() + home_slot_size - 1) / home_slot_size;
  uint64_t hash = checksum_of(std::as_bytes(std::span(name))) + attempt * 0x9E3779B97F4A7C15ull;
  uint64_t k = (hash >> 16) % (rt::home_slots - slots);
  return home(k - k % (align / home_slot_size));
}

bool is_home(AppPc image_begin) {
  uint64_t k = (image_begin.value - rt::home_base) >> 32;
  return image_begin.value >= rt::home_base && k < rt::home_slots && image_begin == home(k);
}

}  // namespace weir::engine
