// Parts of functions that stand elsewhere: what the compiler takes for rare in `work` is put in a section of its own, as `work.cold`, and
// reached by jumps. For the author it is `work`.
#pragma once

#include <functional>
#include <optional>

#include "elf/eh_frame.h"
#include "symbols/object.h"
#include "symbols/symbol_table.h"
#include "symbols/symbols.h"

namespace weir::symbols {

class PartFinder {
 public:
  // Both outlive this.
  PartFinder(const Object& image, SymbolTable& symbols)
      : image_(image), symbols_(symbols), frames_(image.contents, image.sections) {}

  // By its symbol, or the one around it; or, where that says nothing, by its unwind rules, which are those of a function under way.
  bool is_part(const Function& f);
  // The function that a part belongs to: the one that has its symbol, or whose middle it jumps to, or, if it jumps to none, the only one of
  // its name. None: there are several.
  using FunctionAt = std::function<const Function*(Vaddr)>;
  const Function* whole_of(const Function& part, const FunctionAt& function_at);

 private:
  const Function* named(std::string_view name, const FunctionAt& function_at);

  const Object& image_;
  SymbolTable& symbols_;
  elf::EhFrame frames_;
};

}  // namespace weir::symbols
