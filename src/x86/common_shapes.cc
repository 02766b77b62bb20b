// The shapes of common_shapes.txt, in its order, and the table that decode() finds them in.
#include "x86/make_operands.h"
#include "x86/slot.h"

namespace weir::x86 {
namespace {
constexpr RegSet regs(uint16_t gpr, uint8_t flags, uint8_t mask, uint32_t vec) { return {gpr, flags, mask, vec}; }
}  // namespace

// common_shapes[], common_slots[] and common_operands[], made by make_common_shapes.cc.
#include "x86/common_shapes.inc"

}  // namespace weir::x86
