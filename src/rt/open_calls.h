// Calls of named functions (instrument::Named) that have not returned, for tools that want to see how they do.
//
// An open call is known by the place of its return address. It is over when the stack pointer is above that: it has returned if control is where
// the return address says, and was left otherwise, by an exception or longjmp. At each place that calls return to, translated code compares
// the stack pointer with `awaited`, where the innermost open call will have returned; the rest is rt/open_calls.cc.
//
// The calls of all stacks of a thread lie in one array, by address: on a stack the innermost one has the lowest.
#pragma once

#include <stdint.h>

namespace weir::rt {

struct OpenCall {
  uint64_t rsp;  // where the return address is: 8 less than the stack pointer behind the return
  uint64_t return_address;
  uint64_t note;          // the tool's own
  uint64_t left_at;       // the stack pointer when control left this stack for another, as it seems; 0: it did not
  uint32_t number;        // of the function: the tool's own (instrument::Tool::name)
  uint16_t is_inherited;  // it began in the process that forked
  uint16_t is_suspended;  // control is not on this stack, or has left the call
};
static_assert(sizeof(OpenCall) == 40);

// Of a thread, in what translated code touches. All ones: never.
struct Awaited {
  uint64_t returned;    // the stack pointer when the innermost open call has returned
  uint64_t moved;       // moves of the stack pointer to here, or higher, are to be told
  uint64_t moved_from;  // where it was before
};

// Behind the thread block.
constexpr uint32_t open_calls_offset = 224 << 20, open_calls_end = 226 << 20;
struct OpenCalls {
  uint32_t count;
  uint32_t suspended;        // of them: their stack is not the current one, or they were left
  uint64_t lost;             // calls that found no room: their end was not seen
  uint64_t interrupted[16];  // the stack pointers that handlers have interrupted: as ThreadBlock::interrupted
  OpenCall calls[];
};
static_assert(sizeof(OpenCalls) == 144);
constexpr uint32_t max_open_calls = (open_calls_end - open_calls_offset - sizeof(OpenCalls)) / sizeof(OpenCall);

// What translated code calls, as numbers of routines.
enum CallRoutine : uint32_t {
  CallBegins = (1 << 16) + 2,  // A: CallWants, B: the number of the function
  CallsReturn,                 // A, B: the lower and the upper half of the address that is returned to
  StackMoves,
};
enum CallWants : uint32_t { WantsReturn = 1, MayReplace = 2 };
// Where a function goes on that the tool has done: so many bytes before the place where its own code does.
constexpr uint32_t replaced_entry = 5;

}  // namespace weir::rt
