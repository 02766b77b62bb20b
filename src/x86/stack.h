// Who leaves for another stack, or for another frame of it.
#pragma once

#include <cstddef>
#include <span>

namespace weir::x86 {

// mov rsp, r or m, and lea rsp, m: but for rbp, and places next to rsp or rbp, which are of the function's own frame. So longjmp does it, an
// unwinder, and who switches coroutines.
bool moves_stack(std::span<const std::byte> insn);

}  // namespace weir::x86
