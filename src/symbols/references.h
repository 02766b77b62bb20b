// Who refers to which code of an image: by a call, by a jump, or by its address.
//
// All code is decoded once, from the first byte to the last: functions, and what lies between them. What is no code there may look like a
// reference that is none; none is missed but those that are computed. (libc: 350,000 instructions, some 10 ms.)
#pragma once

#include <span>
#include <vector>

#include "elf/contents.h"

namespace weir::symbols {

using elf::Vaddr;
using elf::VRange;

struct Reference {
  enum Kind : uint8_t { Call, Jump, Address, Data };  // Address: in an instruction. Data: in a table, or the loader's
  Vaddr to;
  uint32_t from;  // the function that holds it, by its index; `nobody`: code that is in none, or data
  Kind kind;
};
constexpr uint32_t nobody = UINT32_MAX;

class References {
 public:
  // Of `functions`, which are sorted and apart: those that lead from one to another, to its begin, or by a call or a jump to its middle.
  References(const elf::Contents& image, std::span<const elf::Section> sections, std::span<const VRange> functions);
  // To a place in `range`.
  std::span<const Reference> to(VRange range) const;
  std::span<const Reference> all() const { return all_; }  // sorted by `to`, then by `from`

 private:
  std::vector<Reference> all_;
};

// The range that has `v`, by its index, or `nobody`.
uint32_t index_at(std::span<const VRange> functions, Vaddr v);

}  // namespace weir::symbols
