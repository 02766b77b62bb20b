// What kind of memory is at an address of a process, as /proc tells.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/address.h"
#include "process/memory.h"
#include "tools/memory/runtime/memory.h"

namespace weir::memory {

class Regions {
 public:
  // Of a thread's first question, its stack pointer says which mapping is its stack.
  runtime::Answer find(uint32_t pid, uint32_t tid, const runtime::Question& question);
  void forget_thread(uint32_t tid) { stacks_.erase(tid); }

 private:
  uint64_t end_of_image(const std::vector<process::Region>& regions, size_t index, uint32_t pid);

  struct Stack {
    uint32_t pid;
    AppPc pointer;
  };
  std::map<uint32_t, Stack> stacks_;         // by thread
  std::map<std::string, uint64_t> extents_;  // of image files: how far their memory goes beyond its begin
};

}  // namespace weir::memory
