// The instructions of call frame information, as a state machine that gives a rule for every range of addresses.
#pragma once

#include <functional>

#include "elf/cfi.h"
#include "rt/unwind_table.h"

namespace weir::unwind {

// Calls `take` with the begin of each range and its rule, in order, from the FDE's begin on. Ranges end where the next begins,
// the last at the FDE's end. From an instruction on that is broken or unknown, the rule is Unsupported.
void run(const elf::Fde& fde, const std::function<void(elf::Vaddr, const rt::Rule&)>& take);

}  // namespace weir::unwind
