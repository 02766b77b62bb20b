// What the tool `memory` keeps in the target: what kind of memory each page is, as far as it was asked for.
//
// A table of the process: in the tool's memory of its first thread, whose thread block holds the signal actions, too. An entry has the
// upper bits of the page that it is about, and one more than its kind. Those that are 0, or about another page, are asked for.
//
//     entry = table[address >> 12 & 0x3ffffff]          kind = (entry ^ (address >> 34 & ~15)) - 1, if that is one
#pragma once

#include "rt/abi.h"

namespace weir::memory::runtime {

enum Kind : uint32_t { Stack, Heap, Static, Code, known_kinds, Nowhere = known_kinds, kinds };

constexpr uint32_t table_offset = rt::tool_offset, table_bits = 26, page_bits = 12, kind_bits = 4;
constexpr uint64_t table_size = sizeof(uint16_t) << table_bits, page_size = 1 << page_bits;
static_assert(table_offset + table_size <= rt::tool_end);

constexpr uint64_t upper_bits(uint64_t address) {
  return address >> (page_bits + table_bits - kind_bits) & ~((uint64_t{1} << kind_bits) - 1);
}

// Words that the probes touch (rt::ThreadBlock::tool).
enum Word { TableWord, HasAskedWord };
// The routine of the probes: A is an address; its kind is what it leaves.
constexpr uint32_t find_kind = 0;

// What Weir is asked, and answers.
struct Question {
  uint64_t address;
  uint64_t stack_pointer;  // of a thread that asks for the first time, else 0: where that leads is its stack
};
struct Answer {
  uint64_t begin, end;  // all that is of the same kind; empty: nothing is there
  uint64_t kind;
};

}  // namespace weir::memory::runtime
