// A function on its way into the code cache: what is read, found out and made of it, step by step (translate.cc).
#pragma once

#include <sys/types.h>

#include <span>
#include <vector>

#include "base/address.h"
#include "instrument/lower.h"
#include "instrument/tool.h"
#include "x86/function.h"

namespace weir::engine {

struct Region;

// One is used for all, as its vectors keep their memory.
struct Translation {
  // What is asked for.
  AppPc pc;
  instrument::Version version = 0;
  uint32_t arena = 0;  // where it is to lie
  pid_t pid = 0;  // whose memory is read
  const Region* region = nullptr;
  // Cut out of the program:
  AppRange bounds;
  std::span<const std::byte> code;  // as it is there, of the file or in the buffer
  x86::Function function;
  // What the tool adds.
  instrument::Plan plan;
  // The result.
  instrument::Lowered lowered;

  std::vector<std::byte> code_buffer, data_buffer;

  std::span<const std::byte> code_at(AppPc at, size_t size) const {
    if (at < bounds.begin || at >= bounds.begin + static_cast<int64_t>(code.size())) return {};
    auto offset = static_cast<size_t>(at - bounds.begin);
    return code.subspan(offset, std::min(size, code.size() - offset));
  }
};

}  // namespace weir::engine
