// Bytes as an ELF file: whatever they say, answers are inside executable segments, and nothing is read outside the bytes.
//
// Input: the file itself. Addresses asked for: around the ends of every segment, and spread over the executable ones.
#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "elf/image.h"

using namespace weir;
using namespace weir::elf;

namespace {

void ask(const Image& image, Vaddr v) {
  std::optional<VRange> bounds = image.function_bounds(v);
  if (!bounds) return;
  CHECK(bounds->contains(v));
  CHECK(std::ranges::any_of(image.segments(), [&](const Segment& s) {
    return s.type == PT_LOAD && s.flags & PF_X && s.vaddr <= bounds->begin &&
           bounds->end.value - s.vaddr.value <= s.file_size;
  }));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto bytes = reinterpret_cast<const std::byte*>(data);
  auto opened = Image::from_memory(std::vector(bytes, bytes + size), "input");
  if (!opened) {
    CHECK(opened.error().what.starts_with("input: "));
    return 0;
  }
  const Image& image = **opened;
  CHECK(image.build_id().size() <= 2 * size);
  image.uses_address_sanitizer();
  // A thousand headers over the same bytes say nothing new.
  size_t count = std::min<size_t>(image.segments().size(), 16);
  for (const Segment& s : image.segments().first(count)) {
    CHECK(s.file_size == 0 || (s.offset < size && s.file_size <= size - s.offset));
    for (int64_t near : {-1, 0, 1}) {
      ask(image, s.vaddr + near);
      ask(image, s.vaddr + static_cast<int64_t>(s.file_size) + near);
    }
    for (uint64_t at = 0; s.flags & PF_X && at < s.file_size; at += s.file_size / 64 + 1)
      ask(image, s.vaddr + static_cast<int64_t>(at));
  }
  return 0;
}
