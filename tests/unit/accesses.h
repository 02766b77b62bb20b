// What x86/operands.h says, as a program: the bytes that an operand accesses, given the registers before the instruction.
#pragma once

#include <cstring>
#include <vector>

#include "x86/operands.h"

namespace weir::x86 {

struct Registers {
  uint64_t gpr[16];
  uint64_t flags;
  uint64_t mask[8];
  uint64_t mmx[8];
  uint64_t fs, gs;  // the bases of the segments
  uint8_t vec[32][64];
};

struct Bytes {
  uint64_t address, size;
};

// The elements that the mask selects.
inline std::vector<bool> selected(const MemoryOperand& o, const Registers& r) {
  unsigned elements = o.size / o.element;
  std::vector<bool> result(elements, o.mask_in == MaskIn::Nothing);
  if (o.mask_in == MaskIn::Nothing) return result;
  for (unsigned b = 0; b < o.mask_bits; ++b) {
    const uint8_t* vector = o.mask_in == MaskIn::Mmx ? reinterpret_cast<const uint8_t*>(&r.mmx[o.mask]) : r.vec[o.mask];
    bool bit = o.mask_in == MaskIn::K ? r.mask[o.mask] >> b & 1 : vector[(b + 1) * o.element - 1] >> 7;
    if (bit) result[b % elements] = true;
  }
  return result;
}

inline std::vector<Bytes> bytes_of(const MemoryOperand& o, const Registers& r) {
  constexpr uint64_t direction_flag = 0x400;
  uint64_t cut = o.wraps_at_32_bits ? 0xffffffff : ~uint64_t{0};
  uint64_t segment = o.segment == Segment::Fs ? r.fs : o.segment == Segment::Gs ? r.gs : 0;
  auto gpr = [&](uint8_t n) { return n == no_register ? 0 : r.gpr[n]; };
  auto at = [&](uint64_t index, uint64_t further = 0) {
    return segment + ((gpr(o.base) + index * o.scale + static_cast<uint64_t>(o.displacement) + further) & cut);
  };
  if (o.extent == Extent::Indexed) {
    std::vector<Bytes> result;
    auto mask = selected(o, r);
    for (size_t i = 0; i < mask.size(); ++i) {
      int64_t index = 0;
      if (o.index_size == 8) memcpy(&index, r.vec[o.index] + i * 8, 8);
      else if (int32_t narrow; memcpy(&narrow, r.vec[o.index] + i * 4, 4)) index = narrow;
      if (mask[i]) result.push_back({at(static_cast<uint64_t>(index)), o.element});
    }
    return result;
  }
  uint64_t address = at(o.index_size == 1 ? gpr(o.index) & 0xff : gpr(o.index));
  switch (o.extent) {
    case Extent::Plain:
    case Extent::State: return {{address, o.size}};
    case Extent::Line: return {{address & -uint64_t{o.size}, o.size}};
    case Extent::Repeated: {
      uint64_t count = r.gpr[RCX] & cut;
      if (count == 0) return {};
      bool down = r.flags & direction_flag;
      return {{down ? address - (count - 1) * o.size : address, count * o.size}};
    }
    case Extent::BitString: {
      unsigned bits = 8 * o.size;
      auto bit = static_cast<int64_t>(gpr(o.bit_offset) << (64 - bits)) >> (64 - bits);
      int64_t words = bit >= 0 ? bit / bits : -((-(bit + 1)) / static_cast<int64_t>(bits)) - 1;
      return {{at(gpr(o.index), static_cast<uint64_t>(words * o.size)), o.size}};
    }
    case Extent::Masked: {
      std::vector<Bytes> result;
      auto mask = selected(o, r);
      for (size_t i = 0; i < mask.size(); ++i)
        if (mask[i]) result.push_back({address + i * o.element, o.element});
      return result;
    }
    case Extent::Packed: {
      uint64_t count = 0;
      for (bool is_selected : selected(o, r)) count += is_selected;
      return {{address, count * o.element}};
    }
    case Extent::Indexed:
    case Extent::Rows: return {};
  }
  return {};
}

}  // namespace weir::x86
