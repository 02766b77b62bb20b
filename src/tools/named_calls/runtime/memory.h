// What the tool `calls` keeps of a thread, in the target.
#pragma once

#include "rt/abi.h"

namespace weir::named_calls::runtime {

// A function's number says by which pattern it was found, too.
constexpr uint32_t max_patterns = 1 << 12, max_functions = 1 << 20;
constexpr uint32_t number_of(uint32_t pattern, uint32_t function) { return pattern << 20 | function; }
constexpr uint32_t pattern_of(uint32_t number) { return number >> 20; }
constexpr uint32_t function_of(uint32_t number) { return number % max_functions; }

struct Count {
  uint64_t calls, returned, left;
};

// One call, if they are traced.
enum CallState : uint32_t { IsOpen, HasReturned, WasLeft };
struct Record {
  uint64_t arguments[6];
  uint64_t result;
  uint32_t function, state;
};
static_assert(sizeof(Record) == 64);

// What is returned in place of the functions that a pattern means, at all calls of them, or, of each thread, at one.
struct Answer {
  uint64_t value;
  uint32_t is_set;
  uint32_t at;  // 0: all
};

struct State {
  uint32_t traces;
  uint32_t records;   // in use
  uint64_t untraced;  // calls that found no room there
};

constexpr uint32_t state_offset = rt::tool_offset, answers_offset = state_offset + 4096;
constexpr uint32_t counts_offset = answers_offset + max_patterns * sizeof(Answer);
constexpr uint32_t records_offset = counts_offset + max_functions * sizeof(Count);
constexpr uint32_t max_records = (rt::tool_end - records_offset) / sizeof(Record);

}  // namespace weir::named_calls::runtime
