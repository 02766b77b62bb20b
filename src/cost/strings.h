// String instructions: movs, stos, lods, scas, cmps, alone or repeated.
//
// LLVM's models have placeholders for most of them (100 micro-ops, latency 100), and nothing about repetition. The figures here
// were measured on a Zen 4 with data in the first-level cache, and are taken for all CPUs. Once:
// 3 cycles. Repeated n times: start + n · cycles / elements. A block is charged the start; what a run adds is up to who
// can see n, as rcx before minus rcx behind (T3).
//
//              start   an element
//   movs stos   14     32 bytes a cycle ("fast strings")
//   lods scas   28     2 cycles
//   cmps        28     3 cycles
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace weir::cost {

struct Repetition {
  uint16_t start = 0;
  uint16_t cycles = 0, elements = 1;  // so many cycles for so many elements

  // Of n elements, beyond what the block is charged.
  uint64_t extra(uint64_t n) const { return (n * cycles + elements / 2) / elements; }
  friend bool operator==(Repetition, Repetition) = default;
};

struct StringInstruction {
  bool repeated = false;
  Repetition repetition;  // if it were, or is
};
inline constexpr uint16_t string_latency = 3, string_micro_ops = 4;

// None where the instruction at the beginning of these bytes is no string instruction.
std::optional<StringInstruction> string_instruction(std::span<const std::byte> instruction);

}  // namespace weir::cost
