// The functions of an image and their names.
#pragma once

#include <span>
#include <vector>

#include "symbols/object.h"
#include "symbols/symbols.h"

namespace weir::symbols {

// Bounds as the engine cuts them (elf::Image::function_bounds): an entry of a PLT, an FDE, or a symbol in the gap between
// two FDEs. `tables` are the files whose symbols are used: the image itself and what was stripped from it.
std::vector<Function> list_functions(const Object& image, std::span<const Object* const> tables);

// "libc.so.6+0x1234"
std::string unnamed(const Object& image, Vaddr v);

}  // namespace weir::symbols
