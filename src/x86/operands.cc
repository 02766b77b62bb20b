// The operands of one instruction: those of its shape, and its displacement.
#include "x86/operands.h"

#include <cstring>
#include <vector>

#include "base/result.h"
#include "x86/make_operands.h"

namespace weir::x86 {
namespace {

std::vector<MemoryOperand>& made_operands() {
  static std::vector<MemoryOperand> made;
  return made;
}
// Where they are: asked for more often than they move.
const MemoryOperand* made_begin = nullptr;

// enter size, levels: pushes rbp, then levels - 1 pointers that it finds below where rbp points, then where its own frame is.
void place_frame(MemoryOperand& o, uint8_t levels) {
  levels &= 31;
  uint32_t read = levels > 1 ? levels - 1u : 0, written = levels > 0 ? levels + 1u : 1;
  o.size *= writes(o.access) ? written : read;
  o.displacement = -int64_t{o.size};
}

// What place() leaves.
[[gnu::noinline]] void place_odd(MemoryOperand& o, const Shape& s, const std::byte* bytes) {
  if (o.displacement_scale == MemoryOperand::by_immediate)
    return place_frame(o, static_cast<uint8_t>(bytes[s.imm_offset + 2]));
  memcpy(&o.displacement, bytes + s.disp_offset, sizeof o.displacement);
}

// `field` are the four bytes from the displacement on, if it has one. Without a branch that depends on the instruction: a
// mispredicted one costs as much as all the rest.
void place(MemoryOperand& o, const Insn& insn, const std::byte* bytes, uint64_t field) {
  const Shape& s = *insn.shape;
  unsigned unused = (64 - 8 * s.disp_size) & 63;
  int64_t encoded = static_cast<int64_t>(field << unused) >> unused;
  int64_t displacement = o.displacement + encoded * (o.displacement_scale & 0x7f);
  o.displacement = o.is_rip_relative ? static_cast<int64_t>(insn.target.value) : displacement;
  if (o.displacement_scale >= MemoryOperand::wide) [[unlikely]]
    place_odd(o, s, bytes);
}

}  // namespace

uint32_t keep_operands(const MemoryOperands& operands) {
  if (operands.size() == 0) return 0;
  auto& made = made_operands();
  uint32_t first = common_operand_count + static_cast<uint32_t>(made.size());
  CHECK(first < 1u << (32 - Shape::operand_count_bits));
  made.insert(made.end(), operands.begin(), operands.end());
  made_begin = made.data();
  return first << Shape::operand_count_bits | static_cast<uint32_t>(operands.size());
}

MemoryOperands memory_operands(const Insn& insn, std::span<const std::byte> bytes) {
  const Shape& s = *insn.shape;
  MemoryOperands result;
  unsigned count = s.operand_count();
  if (count == 0) return result;
  CHECK(bytes.size() >= s.length);
  uint32_t field = 0;
  bool is_far_from_end = bytes.size() >= s.disp_offset + sizeof field;
  memcpy(&field, bytes.data() + s.disp_offset, is_far_from_end ? sizeof field : s.disp_size & 4u);
  if (!is_far_from_end && s.disp_size == 1) field = static_cast<uint8_t>(bytes[s.disp_offset]);
  uint32_t first = s.operands >> Shape::operand_count_bits;
  const MemoryOperand* o =
      first < common_operand_count ? common_operands + first : made_begin + (first - common_operand_count);
  for (unsigned n = 0; n < count; ++n) place(result.add(o[n]), insn, bytes.data(), field);
  // The second operand of enter, if there is nothing to read.
  while (result[result.size() - 1].size == 0 && o->displacement_scale == MemoryOperand::by_immediate) result.drop_last();
  return result;
}

}  // namespace weir::x86
