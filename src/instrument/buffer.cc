#include "instrument/buffer.h"

#include <algorithm>

#include "base/result.h"
#include "rt/abi.h"

namespace weir::instrument {

namespace {
rt::BufferState& state_of(std::byte* memory) { return reinterpret_cast<rt::ThreadBlock*>(memory)->buffer; }
uint64_t address_of(const std::byte* memory, uint32_t offset) {
  return reinterpret_cast<uint64_t>(reinterpret_cast<const rt::ThreadBlock*>(memory)->self) + offset;
}
}  // namespace

void begin_buffer(std::byte* memory, uint32_t offset, uint32_t size) {
  CHECK(offset >= rt::tool_offset && offset + size <= rt::tool_end && size > rt::max_record);
  uint64_t begin = address_of(memory, offset);
  state_of(memory) = {begin, begin + size - rt::max_record + 1, begin};
}

std::span<const std::byte> records_of(const std::byte* memory, uint32_t offset, uint32_t size) {
  uint64_t used = state_of(const_cast<std::byte*>(memory)).next - address_of(memory, offset);
  return {memory + offset, used <= size ? used : 0};
}

}  // namespace weir::instrument
