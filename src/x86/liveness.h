// Which registers and flags hold a value that may still be read: backward data flow over a lifted function.
//
// A probe may use what is dead. At the edges of what is known the worst is assumed: everything is live behind a return, an
// indirect jump, a jump out of the function, a trap, a system call's own arguments. Across a call everything is live too:
// arguments going in, and GCC's -fipa-ra keeps even caller-saved registers alive across calls of local functions.
// Nothing is assumed of the ABI.
#pragma once

#include <vector>

#include "x86/function.h"

namespace weir::x86 {

struct Liveness {
  std::vector<RegSet> live_in;   // per block: live at its begin
  std::vector<RegSet> live_out;  // per block: live at its end

  // Live just before each instruction of the block, and, last, behind the block: count + 1 sets.
  std::vector<RegSet> inside(const Function& f, BlockId block) const;
};

Liveness liveness(const Function& f);

// For one who asks of a single register at the entry blocks only: live_in is right there as far as `reg` goes, and says
// everything elsewhere; live_out is empty.
Liveness liveness_at_entries(const Function& f, Gpr reg);

}  // namespace weir::x86
