// The frames of sorted addresses, in one pass over the tables.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "symbols/debug_info.h"
#include "symbols/object.h"

namespace weir::symbols {

class FrameFinder {
 public:
  using FunctionAt = std::function<const Function*(Vaddr)>;
  FrameFinder(const Object& image, FunctionAt function_at, DebugInfo& info)
      : image_(image), function_at_(std::move(function_at)), info_(info) {}

  // The frames of `v`, which is not below the last one; good until the next call.
  std::span<const Frame> at(Vaddr v);

 private:
  void find(Vaddr v);
  const Function* find_function(Vaddr v);
  void find_unit(Vaddr v);
  void until(Vaddr end) { same_.end = std::min(same_.end, end); }

  const Object& image_;
  FunctionAt function_at_;
  DebugInfo& info_;
  // Where the last address was in each table.
  const Function* function_ = nullptr;
  size_t row_ = 0, stretch_ = 0;
  DebugInfo::Found unit_;
  // Its frames, and the addresses that have the same ones.
  std::vector<Frame> frames_;
  std::string unnamed_;
  VRange same_;
};

}  // namespace weir::symbols
