#include "tools/memory/kind.h"

#include "tools/memory/runtime/memory.h"

namespace weir::memory {

using instrument::Condition, instrument::Op, instrument::Temp;

void append_kind(std::vector<Op>& ops, std::initializer_list<Op> address) {
  using enum Temp;
  constexpr int64_t index_mask = ((int64_t{1} << runtime::table_bits) - 1) * 2, upper_mask = -(1 << runtime::kind_bits);
  constexpr int64_t upper_at = runtime::page_bits + runtime::table_bits - runtime::kind_bits;
  const Op look_up[] = {
      {.kind = Op::Set, .temp = B, .other = A, .by_temp = true},
      {.kind = Op::ShiftRight, .temp = B, .value = runtime::page_bits - 1},
      {.kind = Op::And, .temp = B, .value = index_mask},
      {.kind = Op::GetWord, .temp = C, .value = runtime::TableWord},
      {.kind = Op::Add, .temp = B, .other = C, .by_temp = true},
      {.kind = Op::Load, .temp = B, .other = B, .size = 2},
      {.kind = Op::ShiftRight, .temp = A, .value = upper_at},
      {.kind = Op::And, .temp = A, .value = upper_mask},
      {.kind = Op::Xor, .temp = A, .other = B, .by_temp = true},
      {.kind = Op::Add, .temp = A, .value = -1},
      {.kind = Op::ColdIf,
       .temp = A,
       .count = static_cast<uint8_t>(address.size() + 2),
       .condition = Condition::AboveOrEqual,
       .value = runtime::known_kinds},
  };
  const Op ask[] = {{.kind = Op::Call, .value = runtime::find_kind}, {.kind = Op::GetResult, .temp = A}};
  ops.insert(ops.end(), address);
  ops.insert(ops.end(), std::begin(look_up), std::end(look_up));
  ops.insert(ops.end(), address);
  ops.insert(ops.end(), std::begin(ask), std::end(ask));
}

}  // namespace weir::memory
