// Strings are written once, and named by number.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "base/index_table.h"
#include "store/value.h"

namespace weir::store {

// The views must outlive this.
class Strings {
 public:
  uint32_t number(std::string_view s) {
    auto next = static_cast<uint32_t>(all_.size());
    uint32_t found = table_.find_or_add(static_cast<uint32_t>(std::hash<std::string_view>()(s)), next,
                                        [&](uint32_t i) { return all_[i] == s; });
    if (found == next) all_.push_back(s);
    return found;
  }
  Value id(std::string_view s) { return s.empty() ? Value() : Value(number(s)); }
  const std::vector<std::string_view>& all() const { return all_; }

 private:
  IndexTable table_;
  std::vector<std::string_view> all_;
};

}  // namespace weir::store
