// Code as text, for people: Intel syntax, as Zydis writes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weir::x86 {

struct TextInsn {
  uint64_t offset;  // of the instruction, as `offset` below counts
  uint8_t length;
  std::string text;
};

// The instructions in `bytes`, the first of which is at `offset`; targets are written as offsets. A byte that begins no
// instruction is one of its own: "(bad) 06".
std::vector<TextInsn> disassemble(std::span<const std::byte> bytes, uint64_t offset);

}  // namespace weir::x86
