// System calls of the program's, as a tool is told of them that asks (instrument::Services::system_calls).
//
// Here is what is kept of it in a thread's memory. A probe before each `syscall` instruction comes to begin_told_call(), one behind it to end_told_call(), whoever
// makes the call. In between it waits in a list, by its place and the stack pointer, as handlers may make calls meanwhile, and may leave it for good.
#pragma once

#include "rt/abi.h"
#include "rt/call_effects.h"

namespace weir::rt {

struct WaitingCall {
  uint64_t pc, rsp;
  SystemCall call;
  bool is_late;     // the thread was in it when Weir came: nobody has asked before it
  bool is_dropped;  // the kernel has not made it
};
constexpr uint32_t max_waiting_calls = 16;  // as many handlers may be inside each other (interrupted_count)

// Of a thread, at told_calls_offset.
struct ToldCalls {
  uint64_t told, unknown;  // calls; effects that were told as unknown
  uint64_t without_begin;  // calls that were over, and had been forgotten: told as unknown
  uint32_t was_refused;    // of the call that is being told: memory was not read
  uint32_t count;
  WaitingCall waiting[max_waiting_calls];  // the last is the innermost
};
static_assert(told_calls_offset + sizeof(ToldCalls) <= counters_offset);

}  // namespace weir::rt
