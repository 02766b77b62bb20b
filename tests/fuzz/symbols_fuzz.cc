// Bytes as an ELF file with DWARF: whatever they say, functions are sorted and apart, every address has frames, and
// nothing is read outside the bytes. Nothing is looked for on disk.
//
// Input: the file itself.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "symbols/symbols.h"

using namespace weir::symbols;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto bytes = reinterpret_cast<const std::byte*>(data);
  auto symbols = Symbols::from_memory(std::vector(bytes, bytes + size), "input", {.debug_root = "/nowhere"});
  Vaddr end;
  std::vector<Vaddr> addresses;
  for (const Function& f : symbols->functions()) {
    CHECK(end <= f.range.begin && f.range.begin < f.range.end && !f.name().empty());
    end = f.range.end;
    addresses.push_back(f.range.begin);
    if (f.range.size() > 1) addresses.push_back(f.range.end + -1);
  }
  size_t taken = 0;
  symbols->frames(addresses, [&](size_t i, std::span<const Frame> frames) {
    CHECK(i == taken++ && !frames.empty() && !frames.back().function.empty());
  });
  CHECK(taken == addresses.size());
  for (Vaddr v : addresses) symbols->declaration(v);
  end = {};
  for (const Row& row : symbols->rows({{0}, {UINT64_MAX}})) {
    CHECK(end <= row.range.begin && row.range.begin < row.range.end);
    end = row.range.end;
  }
  std::vector<uint32_t> lines = symbols->source_lines_of("/input.c");
  CHECK(std::ranges::is_sorted(lines));
  return 0;
}
