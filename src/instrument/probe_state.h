// Where a probe that operate.cc lowers has put things: its temporaries, and the registers of the program that it has in their place.
#pragma once

#include "instrument/tool.h"

namespace weir::instrument {

struct ProbeState {
  const x86::Insn* insn = nullptr;  // that it stands before; null: before none
  AppPc app = {};
  uint32_t begin = 0;          // its offset
  uint16_t temps_used = 0;     // bit n: temporary n
  uint16_t temps_spilled = 0;  // … is in a register whose value waits in spill[n]
  x86::Gpr temp[temps] = {};
  uint16_t dead = 0, others = 0, wanted = 0;  // registers that can be lent: those last that the probe reads
  bool flags_free = false;                    // operations may write flags: they are dead, or wait in rax
  bool flags_in_rax = false, with_overflow = false, rax_spilled = false;
  uint8_t restore = 0;  // see Mark
  uint16_t spilled = 0;
};

// Operations out of line: see Op::ColdIf and Op::BeginRecord.
struct ColdPart {
  ProbeState state;
  std::span<const Op> ops;
  bool empties_buffer = false;  // … instead, and `temp` is where the next record goes then
  x86::Gpr temp = x86::RAX;
};

// Is the operation, or what it is done with, one for operate.cc?
inline bool is_general(const Op& op) {
  return (op.kind > Op::GoTo && op.kind < Op::PushFrame) || op.by_temp || op.size != 8 || op.temp > Temp::B ||
         op.other > Temp::B;
}

}  // namespace weir::instrument
