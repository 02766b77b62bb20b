// The virtual clock. On a processor with AVX-512 it is in xmm31, a register that hardly any program uses: an addition costs one instruction,
// neither flags nor a general register, and does not wait for memory. Elsewhere it is the sum of two cells.
//
// The program's own zmm31 is in the thread block meanwhile; instructions that use it get it for as long as they need it.
#pragma once

#include "base/processor.h"
#include "x86/insn.h"

namespace weir::instrument {

// Where zmm31 is in the extended state of a signal frame. 0: the processor has none, the clock is in memory.
uint32_t clock_register_offset(const Processor& processor = weir::processor());

// The clock of a thread that begins on this machine: `memory` is its thread block.
void begin_clock(std::byte* memory);

constexpr bool uses_clock_register(const x86::Insn& insn) { return (insn.shape->reads.vec | insn.shape->writes.vec) >> 31; }

}  // namespace weir::instrument
