// Bytes as /proc/PID/maps: no line is read past its end, and none is made up.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "process/maps.h"

using namespace weir;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<char> exact(data, data + size);  // (so that one byte too many is noticed)
  std::string_view text(exact.data(), exact.size());
  auto regions = process::parse_maps(text);
  CHECK(regions.size() <= static_cast<size_t>(std::ranges::count(text, '\n')) + 1);
  for (const process::Region& r : regions) CHECK(r.path.empty() || text.find(r.path) != text.npos);
  return 0;
}
