// Bytes as a file of names for written code: whatever they say, its entries are apart, none is empty, and each is found.
//
// Input: the file, in two parts, as a program appends to it.
#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "symbols/perf_map.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  weir::symbols::PerfMap map;
  map.parse(text.substr(0, size / 2));
  map.parse(text.substr(size / 2));
  weir::AppPc end;
  for (auto i = map.entries().begin(); i != map.entries().end(); ++i) {
    CHECK(end <= i->first && i->first < i->second.end && !i->second.name.empty());
    end = i->second.end;
    CHECK(map.find(i->first) == i && map.find(end + -1) == i);
  }
  return 0;
}
