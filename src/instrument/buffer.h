// The buffer of records that a thread has for its tool (rt/buffer.h): from the tool's side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::instrument {

// In Tool::begin_thread: the buffer is these bytes of the thread's memory.
void begin_buffer(std::byte* memory, uint32_t offset, uint32_t size);
// The whole records that are in it. (What the target writes there is not believed: they lie in the buffer, whatever it says.)
std::span<const std::byte> records_of(const std::byte* memory, uint32_t offset, uint32_t size);

}  // namespace weir::instrument
