// Regular expressions that a person or a web page wrote. RE2 takes time in proportion to the text and bounded memory, whatever the
// expression; that of the C library recurses without end on some, and never answers on others.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/text.h"

namespace re2 {
class RE2;
}

namespace weir {

class Pattern {
 public:
  enum class Case : uint8_t { Matters, Ignored };
  static Result<Pattern> make(std::string_view text, Case letters = Case::Matters);
  // Anywhere in the text.
  bool matches(std::string_view text) const;
  // Or in the name without its mark: `^work$` is in "work [constprop.0]", too.
  bool matches_name(std::string_view name) const { return matches(name) || matches(without_mark(name)); }

 private:
  explicit Pattern(std::shared_ptr<const re2::RE2> compiled) : compiled_(std::move(compiled)) {}
  std::shared_ptr<const re2::RE2> compiled_;
};

}  // namespace weir
