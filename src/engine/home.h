// Homes: where images lie in the target.
//
// Position-independent images may lie anywhere, so Weir chooses: each has a *home*, the same in every run, so that code
// translated in one run is good in the next, and so that no two have the same low 32 bits (by which the table is
// indexed). A home is a window of 4 GiB for the image and its code cache:
//
//     window = home_base + k·2³²      cache = window + k·2²⁰      image = window + 2³⁰ + k·2²⁰      k < home_slots
//
// k comes from a hash of the image's build-id; if its place is taken, from the next hash.
#pragma once

#include <optional>

#include "base/address.h"
#include "elf/image.h"
#include "rt/abi.h"

namespace weir::engine {

constexpr uint64_t home_distance = uint64_t{1} << 30;  // from the cache to the image
constexpr uint64_t home_slot_size = 1 << 20;

// The addresses from its first to its last segment, as it was linked.
elf::VRange extent_of(const elf::Image& image);

// Where the image's first segment should be; none where it has no home (too large, or at a fixed address).
std::optional<AppPc> home_of(const elf::Image& image, uint64_t attempt);
bool is_home(AppPc image_begin);

}  // namespace weir::engine
