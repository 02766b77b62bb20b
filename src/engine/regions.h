// The regions of a tool (instrument::ToolRegion): where they lie, and the files of those that Weir sees.
#pragma once

#include <sys/types.h>

#include <memory>
#include <span>
#include <vector>

#include "base/address.h"
#include "base/fd.h"
#include "base/result.h"
#include "instrument/tool.h"

namespace weir::engine {

// All together.
uint64_t size_of(std::span<const instrument::ToolRegion> regions);

// Where each is to lie in a process that has these addresses in use. In order; none overlaps another, or what is Weir's otherwise.
Result<std::vector<AppRange>> place_regions(std::span<const instrument::ToolRegion> regions, std::vector<AppRange> taken);

std::string names_of(std::span<const instrument::ToolRegion> regions);
// What to do where regions cannot be had.
std::string no_room_for(std::span<const instrument::ToolRegion> regions);

// How a region is mapped: mmap's flags, but for its place. Private memory is mapped as a stack would be, as the limit on data (RLIMIT_DATA) does not count
// those; a page below, where nobody may go, keeps it from growing.
int map_flags_of(const instrument::ToolRegion& region);
inline bool is_private(const instrument::ToolRegion& region) {
  return region.at_fork == instrument::ToolRegion::AtFork::Copy && !region.is_visible;
}
inline AppRange guard_of(AppRange region) { return {region.begin + -4096, region.begin}; }
// With its guard, where it has one.
inline AppRange whole(const instrument::ToolRegion& region, AppRange range) {
  return {is_private(region) ? guard_of(range).begin : range.begin, range.end};
}
// … and what is advised then: it is not for core files, and sparse, so that a huge page would be mostly waste.
inline constexpr uint64_t region_advice[] = {16 /* MADV_DONTDUMP */, 15 /* MADV_NOHUGEPAGE */};
// The kernel does not copy it for a child of fork, as Weir sees it.
inline bool is_copied_by_weir(const instrument::ToolRegion& region) {
  return region.is_visible && region.at_fork == instrument::ToolRegion::AtFork::Copy;
}

// The files of a process' regions, by number; null: Weir does not see that one.
using RegionFiles = std::vector<std::shared_ptr<Fd>>;
Result<RegionFiles> create_files(std::span<const instrument::ToolRegion> regions);
// A new file with what the region of the parent has.
Result<std::shared_ptr<Fd>> copy_file(const instrument::ToolRegion& region, int file);

}  // namespace weir::engine
