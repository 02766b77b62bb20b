// The functions of an image and their names.
//
// Bounds are as the engine cuts them (elf::Image::function_bounds): an entry of a PLT, an FDE, or a symbol in the gap between two FDEs.
#pragma once

#include <optional>
#include <vector>

#include "elf/eh_frame.h"
#include "symbols/object.h"
#include "symbols/plt.h"
#include "symbols/symbol_table.h"
#include "symbols/symbols.h"

namespace weir::symbols {

std::vector<Function> list_functions(const Object& image, SymbolTable& symbols);

// The same one by one, for those who need few of them.
class FunctionFinder {
 public:
  // Neither is copied: both outlive this.
  FunctionFinder(const Object& image, SymbolTable& symbols);
  FunctionFinder(const FunctionFinder&) = delete;

  // The function around an address, as it stands in the list, or the hole between two of the list. None: only the list can tell.
  struct Place {
    std::optional<Function> function;
    VRange hole;
  };
  std::optional<Place> at(Vaddr v);

 private:
  struct Bounds {
    std::optional<VRange> function = {}, hole = {};
  };
  Bounds bounds_at(Vaddr v);  // without regard to PLTs
  const Object& image_;
  SymbolTable& symbols_;
  std::vector<VRange> code_;
  elf::EhFrame frames_;
  Plt plt_;
};

// "libc.so.6+0x1234"
std::string unnamed(const Object& image, Vaddr v);

}  // namespace weir::symbols
