// The runtime part of a tool: what it offers to the runtime, and how the runtime calls it.
//
// It is linked into the runtime's image, freestanding, and registers there by its name (engine::Options::runtime_part). Weir gives each thread block the hooks and
// the light routines of its tool; threads of other tools have none.
#pragma once

#include "rt/abi.h"

namespace weir::rt {

// All may be null.
struct Hooks {
  // A probe calls: see instrument::Op::Call.
  void (*routine)(ThreadBlock*, uint32_t number, uint64_t a, uint64_t b);
  // The kernel has the thread for a system call of the program's; it has not any more; and it had not, as it turns out.
  void (*kernel_begins)(ThreadBlock*);
  void (*kernel_ends)(ThreadBlock*);
  void (*kernel_dropped)(ThreadBlock*);
  // The thread waits for Weir, which is none of the program's time.
  void (*wait_begins)(ThreadBlock*);
  void (*wait_ends)(ThreadBlock*);
  // The thread may be called otherwise than before.
  void (*name_changes)(ThreadBlock*);
  // From now on the time stamp counter may not be read, or may be again.
  void (*stamps_change)(ThreadBlock*, bool are_allowed);
  // A handler of the program begins, or has ended: `index` is that of what it interrupted in ThreadBlock::interrupted, or none where that is not known.
  // What was interrupted goes on, or is left for a place that the handler has chosen.
  void (*handler_begins)(ThreadBlock*, uint32_t index);
  void (*handler_ends)(ThreadBlock*, uint32_t index, uint64_t frame, bool goes_on);
  // The virtual clock will begin again: what was noted of it is to be as if it had been so all the time.
  void (*clock_restarts)(ThreadBlock*, Times by);
  // The thread's buffer is full (rt/buffer.h), and is to be empty behind this. Null: Weir empties it.
  void (*buffer_is_full)(ThreadBlock*) = nullptr;
};
constexpr uint32_t not_interrupted = interrupted_count;

template <class... Parameters, class... Arguments>
[[gnu::always_inline]] inline void call_hook(ThreadBlock* tb, void (*Hooks::*hook)(ThreadBlock*, Parameters...),
                                             Arguments... arguments) {
  if (tb->hooks && tb->hooks->*hook) (tb->hooks->*hook)(tb, arguments...);
}

// LightRoutine: it reads its arguments from the thread block, keeps all registers, and leaves in ThreadBlock::exit_id the number of the routine that
// is still to be called, or no_routine. (It is called by its number, which is below light_routines, in place of that one.)
struct alignas(64) ToolEntry {
  char name[16];
  const Hooks* hooks;
  LightRoutine* light[light_routines];
};

}  // namespace weir::rt

// In one of its source files: TOOL_RUNTIME(name) = {"name", &hooks, {light routines}};
#define TOOL_RUNTIME(name) [[gnu::used, gnu::section(".tools")]] extern const weir::rt::ToolEntry rt_tool_##name
