// What llvm-bolt calls the local functions of a program: several may have one name, so it numbers them: `name/1`, `name/2`.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "elf/image.h"

namespace weir::report {

// By the address and the name of a local symbol; global ones keep their names.
using BoltNames = std::map<std::pair<uint64_t, std::string>, std::string>;
BoltNames bolt_names(const elf::Image& image);

}  // namespace weir::report
