// Strings are written once, and named by number.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/bulk.h"

namespace weir::store {

// The views must outlive this.
class Strings {
 public:
  uint32_t number(std::string_view s) {
    auto [it, added] = numbers_.try_emplace(s, static_cast<uint32_t>(all_.size()));
    if (added) all_.push_back(s);
    return it->second;
  }
  Value id(std::string_view s) { return s.empty() ? Value() : Value(number(s)); }
  const std::vector<std::string_view>& all() const { return all_; }

 private:
  std::unordered_map<std::string_view, uint32_t> numbers_;
  std::vector<std::string_view> all_;
};

}  // namespace weir::store
