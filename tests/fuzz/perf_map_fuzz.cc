// Bytes as a file of names for written code, as perf reads them.
//
// Input: the file, in two parts, as a program appends to it.
#include <cstddef>
#include <cstdint>

#include "symbols/perf_map.h"
#include "written_code.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  weir::symbols::WrittenCode code;
  weir::symbols::PerfMap::parse(text.substr(0, size / 2), code);
  weir::symbols::PerfMap::parse(text.substr(size / 2), code);
  check_written_code(code);
  return 0;
}
