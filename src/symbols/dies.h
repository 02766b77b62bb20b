// The entries (DIEs) of a compilation unit that describe code, in one pass over its bytes.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <functional>

#include "elf/image.h"

namespace weir::symbols {

using elf::Vaddr;
using elf::VRange;

// An entry that has addresses: a function, or a call that was inlined into one.
struct CodeDie {
  Dwarf_Die die;
  uint32_t parent;  // the innermost one around it, by its number in the order they come in; UINT32_MAX: none
  bool is_inlined;
  VRange range;  // empty: it is not told in the simplest way, and libdw must be asked
};

// Every CodeDie of the unit whose own entry is `unit`, each before those inside it. Ends at the first byte that makes no
// sense.
void each_code_die(Dwarf_Die unit, const std::function<void(const CodeDie&)>& take);

}  // namespace weir::symbols
