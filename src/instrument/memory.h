// A memory operand of an instruction that Weir writes: ModRM but for its register, SIB, and the displacement.
//
// How long the displacement is is part of it, as code is patched, and bounds of its size rely on it.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "x86/insn.h"

namespace weir::instrument {

struct Memory {
  bool is_thread = false;  // it is what the thread has, at that offset: Emitter::reach_thread()
  uint8_t modrm = 0, sib = 0;
  uint8_t rex = 0;  // the bits that extend base and index: B and X
  uint8_t displacement_size = 0;
  bool is_relative = false;  // [rip + displacement], which counts from the begin of the instruction
  int32_t displacement = 0;

  constexpr bool has_sib() const { return (modrm & 7) == 4; }
};

namespace encoding {
constexpr uint8_t no_displacement = 0x00, displacement8 = 0x40, displacement32 = 0x80;  // ModRM.mod
constexpr uint8_t with_sib = 4, without_base = 5, without_index = 4 << 3;
constexpr uint8_t scale_bits(int scale) {
  return static_cast<uint8_t>((scale == 8 ? 3 : scale == 4 ? 2 : scale == 2 ? 1 : 0) << 6);
}
}  // namespace encoding

constexpr Memory at_mod(x86::Gpr base, uint8_t mod, uint8_t size, int32_t displacement) {
  return {.modrm = static_cast<uint8_t>(mod | (base & 7)),
          .sib = encoding::without_index | encoding::with_sib,
          .rex = static_cast<uint8_t>(base >> 3),
          .displacement_size = size,
          .displacement = displacement};
}
// [base + displacement]: of 8 bits where that is enough; of 32 whatever it is; none (base is neither rbp nor r13).
constexpr Memory at(x86::Gpr base, int32_t displacement) {
  bool is_short = displacement == static_cast<int8_t>(displacement);
  return at_mod(base, is_short ? encoding::displacement8 : encoding::displacement32, is_short ? 1 : 4, displacement);
}
constexpr Memory at_wide(x86::Gpr base, int32_t displacement) {
  return at_mod(base, encoding::displacement32, 4, displacement);
}
constexpr Memory at(x86::Gpr base) { return at_mod(base, encoding::no_displacement, 0, 0); }

constexpr Memory indexed(x86::Gpr base, x86::Gpr index, int scale, uint8_t mod, uint8_t size) {
  return {.modrm = static_cast<uint8_t>(mod | encoding::with_sib),
          .sib = static_cast<uint8_t>(encoding::scale_bits(scale) | (index & 7) << 3 | (base & 7)),
          .rex = static_cast<uint8_t>((index >> 3) << 1 | base >> 3),
          .displacement_size = size};
}
// [base + index], and [base + index * scale] where base is neither rbp nor r13. The index is not rsp.
constexpr Memory sum(x86::Gpr base, x86::Gpr index) { return indexed(base, index, 1, encoding::displacement8, 1); }
constexpr Memory indexed(x86::Gpr base, x86::Gpr index, int scale = 1) {
  return indexed(base, index, scale, encoding::no_displacement, 0);
}
// [index * scale + displacement]
constexpr Memory scaled(x86::Gpr index, int scale, int32_t displacement) {
  return {.modrm = encoding::with_sib,
          .sib = static_cast<uint8_t>(encoding::scale_bits(scale) | (index & 7) << 3 | encoding::without_base),
          .rex = static_cast<uint8_t>((index >> 3) << 1),
          .displacement_size = 4,
          .displacement = displacement};
}
// [displacement]
constexpr Memory absolute(int32_t displacement) {
  return {.modrm = encoding::with_sib,
          .sib = encoding::without_index | encoding::without_base,
          .displacement_size = 4,
          .displacement = displacement};
}
// [rip + …]: what is `distance` from the begin of the instruction.
constexpr Memory relative(int32_t distance) {
  return {.modrm = encoding::without_base, .displacement_size = 4, .is_relative = true, .displacement = distance};
}

// [base + index * scale + displacement], whichever of the registers there are; as short as can be.
constexpr Memory address(uint8_t base, uint8_t index, int scale, int32_t displacement) {
  constexpr uint8_t none = 0xff;
  if (base == none && index == none) return absolute(displacement);
  if (base == none) return scaled(static_cast<x86::Gpr>(index), scale, displacement);
  bool needs_none = displacement == 0 && (base & 7) != x86::RBP;
  auto b = static_cast<x86::Gpr>(base);
  if (index == none) return needs_none ? at(b) : at(b, displacement);
  bool is_short = displacement == static_cast<int8_t>(displacement);
  auto i = static_cast<x86::Gpr>(index);
  if (needs_none) return indexed(b, i, scale);
  Memory m =
      is_short ? indexed(b, i, scale, encoding::displacement8, 1) : indexed(b, i, scale, encoding::displacement32, 4);
  m.displacement = displacement;
  return m;
}

// What a thread has, at an offset from its thread block (rt/abi.h), which has 32 bits.
constexpr Memory thread(Memory m) {
  CHECK(m.displacement_size == 4 && !m.is_relative);
  m.is_thread = true;
  return m;
}
constexpr Memory thread(uint32_t offset) { return thread(absolute(static_cast<int32_t>(offset))); }

}  // namespace weir::instrument
