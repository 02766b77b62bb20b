#include "base/pattern.h"

#include <re2/re2.h>

#include "base/text.h"

namespace weir {

Result<Pattern> Pattern::make(std::string_view text, Case letters) {
  re2::RE2::Options options(re2::RE2::Quiet);
  options.set_case_sensitive(letters == Case::Matters);
  options.set_never_capture(true);
  auto compiled = std::make_shared<const re2::RE2>(re2::StringPiece(text.data(), text.size()), options);
  if (compiled->ok()) return Pattern(std::move(compiled));
  return fail("“{}” is not a regular expression: {}", first_columns(printable(text), 80), printable(compiled->error()));
}

bool Pattern::matches(std::string_view text) const {
  return re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *compiled_);
}

}  // namespace weir
