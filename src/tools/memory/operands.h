// What the tool `memory` makes of an operand.
#pragma once

#include "instrument/operands.h"
#include "tools/memory/memory.h"

namespace weir::memory {

inline bool has_elements(const x86::MemoryOperand& o) {
  return o.extent == x86::Extent::Masked || o.extent == x86::Extent::Packed || o.extent == x86::Extent::Indexed;
}
// Relative to the frame, as far as the instruction tells.
inline bool is_by_frame(const x86::MemoryOperand& o) {
  return (o.base == x86::RSP || o.base == x86::RBP) && o.index == x86::no_register && o.extent == x86::Extent::Plain &&
         o.segment == x86::Segment::None && !o.wraps_at_32_bits;
}
inline bool has_known_address(const x86::MemoryOperand& o) {
  return o.base == x86::no_register && o.index == x86::no_register && o.extent == x86::Extent::Plain &&
         o.segment == x86::Segment::None;
}
inline uint32_t size_of(const x86::MemoryOperand& o) {
  if (has_elements(o)) return o.element;
  return o.extent == x86::Extent::State && !o.size ? state_size : o.size;
}
// cmps and scas.
inline bool may_stop_early(const x86::Insn& insn) { return insn.shape->writes.flags & x86::ZF; }

}  // namespace weir::memory
