// Names that a person may have meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::report {

// Collects the few names that are nearest to a misspelt one: by the letters to insert, delete, replace or swap, in any case.
class NearNames {
 public:
  explicit NearNames(std::string_view wanted);
  void offer(std::string_view name);  // parameters and outer scopes may be left out
  // The nearest first; none if none is near.
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::string wanted_;
  std::vector<std::string> names_;
  std::vector<size_t> distances_;
};

}  // namespace weir::report
