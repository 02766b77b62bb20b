// Random instructions: bytes by the rules of the encodings, filtered by Zydis.
#pragma once

#include <cstdint>
#include <vector>

namespace differential {

struct Random {
  uint64_t state;

  uint64_t next() {  // splitmix64
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  uint64_t below(uint64_t n) { return next() % n; }
  bool percent(unsigned n) { return below(100) < n; }
  uint8_t byte() { return static_cast<uint8_t>(next()); }
};

using Bytes = std::vector<uint8_t>;

// Which registers still hold what they began with, as far as an instruction can be written that does not fault.
struct Registers {
  uint16_t pointers, numbers;
  uint16_t code = 0;  // these have an address of code: nothing else is made of it

  static Registers at_begin();
  void clobber(int reg) { pointers &= ~(1 << reg), numbers &= ~(1 << reg), code &= ~(1 << reg); }
};

// A memory operand: ModRM without its middle bits, SIB, displacement, and the bits that extend base and index.
struct Memory {
  uint8_t modrm;
  bool has_sib = false, extends_base = false, extends_index = false, is_rip_relative = false;
  uint8_t sib = 0;
  Bytes displacement;
  uint8_t segment = 0;  // prefix
};
Memory random_memory(Random& random, const Registers& registers);

struct Allowed {
  bool state_saves, stack_moves;
};
// One instruction at `pc` that falls through. May read and write memory, fault, and change registers.
Bytes random_instruction(Random& random, Registers& registers, uint64_t pc, Allowed allowed);

}  // namespace differential
