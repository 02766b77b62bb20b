#include "engine/regions.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "rt/abi.h"

namespace weir::engine {

using instrument::ToolRegion;

namespace {

// Where Weir's memory is, or may come to be: everything but the table, and arenas near code.
constexpr AppRange ours = {{rt::far_arenas_begin}, {rt::high_table_base + 8 * rt::table_size}};
constexpr AppRange low_table = {{rt::table_base}, {rt::table_base + rt::table_size}};
constexpr AppPc first{uint64_t{16} << 20};  // programs at fixed addresses have their code and heap from there on
constexpr AppPc last{uint64_t{112} << 40};  // the kernel puts what may be anywhere above, downwards

// In order, and what touches is one.
std::vector<AppRange> joined(std::vector<AppRange> ranges) {
  std::ranges::sort(ranges);
  std::vector<AppRange> all;
  for (const AppRange& r : ranges)
    if (!all.empty() && r.begin <= all.back().end) all.back().end = std::max(all.back().end, r.end);
    else all.push_back(r);
  return all;
}

// The highest place below `limit`; 0: none.
AppPc find_below(const ToolRegion& region, AppPc limit, std::span<const AppRange> taken) {
  auto fits = [&](AppPc low, AppPc high) {
    if (high.value < low.value || high.value - low.value < region.size) return AppPc{};
    AppPc at{(high.value - region.size) & ~(region.alignment - 1)};
    return whole(region, {at, high}).begin < low ? AppPc{} : at;
  };
  AppPc high = limit;
  for (size_t i = taken.size(); i-- > 0;) {
    if (taken[i].begin >= high) continue;
    if (taken[i].end < high)
      if (AppPc at = fits(std::max(taken[i].end, first), high)) return at;
    high = taken[i].begin;
    if (high <= first) return {};
  }
  return fits(first, high);
}

// Below what is ours, so that all of it is one piece; else where programs and the kernel have left room.
AppPc find_place(const ToolRegion& region, std::span<const AppRange> taken) {
  if (region.is_low) return find_below(region, low_table.begin, taken);
  AppPc at = find_below(region, ours.begin, taken);
  return at ? at : find_below(region, last, taken);
}

bool is_sound(const ToolRegion& r) {
  return r.size && r.size % 4096 == 0 && r.alignment >= 4096 && !(r.alignment & (r.alignment - 1));
}

}  // namespace

uint64_t size_of(std::span<const ToolRegion> regions) {
  uint64_t size = 0;
  for (const ToolRegion& r : regions) size += whole(r, {{4096}, {4096 + r.size}}).size();
  return size;
}

Result<std::vector<AppRange>> place_regions(std::span<const ToolRegion> regions, std::vector<AppRange> taken) {
  CHECK(regions.size() <= rt::max_tool_regions);
  std::vector<AppRange> places;
  taken.push_back(ours), taken.push_back(low_table);
  for (const ToolRegion& r : regions) {
    CHECK(is_sound(r));
    taken = joined(std::move(taken));
    AppPc at = find_place(r, taken);
    if (!at)
      return fail("it leaves no room for {} ({} MiB{})", r.name, with_commas(r.size >> 20),
                  r.is_low ? ", below 2 GiB" : "");
    places.push_back({at, at + static_cast<int64_t>(r.size)});
    taken.push_back(whole(r, places.back()));
  }
  return places;
}

std::string names_of(std::span<const ToolRegion> regions) {
  std::string names;
  for (const ToolRegion& r : regions) names += fmt::format("{}{}", names.empty() ? "" : ", ", r.name);
  return names;
}

std::string no_room_for(std::span<const ToolRegion> regions) {
  return fmt::format("no room for {} ({} MiB: ulimit -v and vm.overcommit_memory must allow it)", names_of(regions),
                     with_commas(size_of(regions) >> 20));
}

int map_flags_of(const ToolRegion& region) {
  int kind = is_private(region) ? MAP_PRIVATE | MAP_GROWSDOWN : MAP_SHARED;
  return kind | (region.is_visible ? 0 : MAP_ANONYMOUS) | MAP_NORESERVE;
}

namespace {
Result<std::shared_ptr<Fd>> create_file(const ToolRegion& region) {
  auto file = std::make_shared<Fd>(memfd_create("weir-region", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!*file || ftruncate(file->get(), static_cast<off_t>(region.size)) ||
      fcntl(file->get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) || fchmod(file->get(), 0600))
    return fail_errno("{} (ulimit -f must allow it)", region.name);
  return file;
}
}  // namespace

Result<RegionFiles> create_files(std::span<const ToolRegion> regions) {
  RegionFiles files(regions.size());
  for (size_t i = 0; i < regions.size(); i++)
    if (regions[i].is_visible) {
      TRY(files[i], create_file(regions[i]));
    }
  return files;
}

Result<std::shared_ptr<Fd>> copy_file(const ToolRegion& region, int from) {
  TRY(auto copy, create_file(region));
  std::vector<std::byte> bytes(size_t{1} << 20);
  for (off_t at = 0;;) {
    off_t data = lseek(from, at, SEEK_DATA);
    if (data < 0) break;  // there are no more
    at = lseek(from, data, SEEK_HOLE);
    while (data < at) {
      ssize_t n = pread(from, bytes.data(), std::min(bytes.size(), static_cast<size_t>(at - data)), data);
      if (n <= 0 || pwrite(copy->get(), bytes.data(), static_cast<size_t>(n), data) != n)
        return fail_errno("{}: its copy for a child", region.name);
      data += n;
    }
  }
  return copy;
}

}  // namespace weir::engine
