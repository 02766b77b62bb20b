// The parallel stack, for tools that ask for it (instrument::Services): a frame for every call that has not returned.
//
// A function is known by a counter, which says how many frames of it are on the stack; a call site by any number of the tool's. Translated code
// pushes and pops (instrument/frame.cc); what is out of the ordinary the runtime does (rt/parallel_stack.h). Behind the head of a frame stands what
// the tool keeps with it.
#pragma once

#include "rt/clock.h"

namespace weir::rt {

struct Frame {
  uint32_t site;
  uint32_t callee;  // or not_arrived
  uint64_t rsp;     // when it has returned; the lowest bits: FrameBits
};
enum FrameBits : uint64_t {
  FrameIsMarked = 1,   // the runtime ends it
  FrameIsTail = 2,     // a tail call: when it returns, so does the frame below
  FrameIsCounted = 4,  // the call has been: by the process that forked, or before its stack was left for another
  frame_bits = 7,
};
constexpr uint32_t direct_site = 1u << 31;     // Frame::site: the callee is the site's own
constexpr uint32_t not_arrived = clock_cells;  // Frame::callee of an indirect call at first; that counter says nothing
constexpr uint32_t first_counter = not_arrived + 1;
constexpr uint32_t unknown_function = 1;  // that a thread begins in
// Begin of a thread; a signal handler; a jump of which nothing is known. (They are counters of the clock, and not_arrived.)
constexpr uint32_t start_site = 0, signal_site = 1, unknown_site = 2;
// The frame of a handler ends so far above its signal frame: behind what its return runs first.
constexpr uint64_t handler_frame = 8;

// The routines of a runtime part that has a parallel stack (rt/parallel_stack.h), those that translated code calls. The first four are light.
enum StackRoutine : uint32_t {
  StackLeave,        // the return site of a call. A: the function that it is in
  StackEnterTail,    // a tail call. A: the site, B: the callee
  StackTailArrival,  // A: the function: it was jumped to
  StackMiddleJump,   // A: the function, B: the site: it was jumped to, but not to its begin
  StackResync = 16,  // A: control came to the middle of this function through the table
};

// Of a thread, in what translated code touches.
struct FrameState {
  uint64_t top;  // where the next frame goes; 0: there is no stack
  // The last indirect jump that may have been a tail call, and the function that it is in.
  uint32_t jump_site, jump_caller;
};

// Behind the thread block.
constexpr uint32_t frames_offset = 128 << 20;
constexpr uint32_t parked_offset = 220 << 20;
constexpr uint32_t frames_end = parked_offset - 4096;  // a page that the target cannot write to

// Stacks of coroutines that are not running.
struct ParkedFrame {
  Frame frame;
  uint64_t stack;  // the number of it
};
constexpr uint32_t max_parked = 1 << 16;

// What a search in vain has found: none of the frames before `limit` has an rsp between `low` and `high`.
struct Absent {
  uint64_t limit, low, high;
};
struct StackState {
  uint32_t parked;    // frames
  uint32_t stacks;    // that were parked so far
  Absent absent[4];   // `limit` is where the frame behind would be; that before it is marked, so that the runtime ends it
  uint64_t searches;  // that were remembered there
  Absent absent_parked;
};
constexpr uint32_t stack_state_offset = parked_offset + max_parked * sizeof(ParkedFrame);
static_assert(stack_state_offset + sizeof(StackState) <= 224 << 20);

}  // namespace weir::rt
