// The frames of sorted addresses, in one pass over the tables.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "symbols/debug_info.h"
#include "symbols/object.h"

namespace weir::symbols {

class FrameFinder {
 public:
  FrameFinder(const Object& image, std::span<const Function> functions, DebugInfo& info)
      : image_(image), functions_(functions), info_(info) {}

  // The frames of `v`, which is not below the last one; good until the next call.
  std::span<const Frame> at(Vaddr v);

 private:
  void find(Vaddr v);
  const Function* find_function(Vaddr v);
  void find_unit(Vaddr v);
  void until(Vaddr end) { same_.end = std::min(same_.end, end); }

  const Object& image_;
  std::span<const Function> functions_;
  DebugInfo& info_;
  // Where the last address was in each table.
  size_t function_ = 0, row_ = 0, stretch_ = 0;
  DebugInfo::Found unit_;
  // Its frames, and the addresses that have the same ones.
  std::vector<Frame> frames_;
  std::string unnamed_;
  VRange same_;
};

}  // namespace weir::symbols
