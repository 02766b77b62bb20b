// Where the images of a run have the functions that its tool names. Each image is looked at once, when code of it is about to run.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "instrument/tool.h"
#include "symbols/named.h"

namespace weir::engine {

using NamedPlaces = std::vector<symbols::NamedFunction>;  // by address

class NamedFunctions {
 public:
  void ask(const instrument::Tool& tool) { names_ = tool.named_functions(); }
  bool empty() const { return names_.empty(); }
  bool wants_returns() const;
  const instrument::Named& operator[](uint32_t name) const { return names_[name]; }

  std::shared_ptr<const NamedPlaces> in(const std::shared_ptr<elf::Image>& image) const;
  // The tool's number for one.
  uint32_t number(instrument::Tool& tool, const instrument::NamedFunction& function);

 private:
  std::vector<instrument::Named> names_;
  std::map<std::tuple<uint32_t, AppPc, uint32_t>, uint32_t> numbers_;  // by image, place and name
};

}  // namespace weir::engine
