// The runtime part of a tool: what it offers to the runtime, and how the runtime calls it.
//
// It is linked into the runtime's image, freestanding, and registers there by its name (engine::Options::runtime_part). Weir gives each thread block the hooks and
// the light routines of its tool; threads of other tools have none.
#pragma once

#include "rt/abi.h"
#include "rt/call_effects.h"

namespace weir::rt {

// A system call of the program's, as a tool is told of it.
struct ToldCall {
  enum Time : uint8_t { Before, After, Frame };
  Time time;
  uint64_t pc;      // behind its instruction
  uint64_t number;  // Frame: no call, but a signal of this number, whose frame is written; pc is what it interrupts
  const uint64_t* arguments;  // as the program gave them; Frame: null
  int64_t result;             // After
};

// All may be null.
struct Hooks {
  // A probe calls: see instrument::Op::Call.
  void (*routine)(ThreadBlock*, uint32_t number, uint64_t a, uint64_t b) = nullptr;
  // The kernel has the thread for a system call of the program's; it has not any more; and it had not, as it turns out.
  void (*kernel_begins)(ThreadBlock*) = nullptr;
  void (*kernel_ends)(ThreadBlock*) = nullptr;
  void (*kernel_dropped)(ThreadBlock*) = nullptr;
  // The thread waits for Weir, which is none of the program's time.
  void (*wait_begins)(ThreadBlock*) = nullptr;
  void (*wait_ends)(ThreadBlock*) = nullptr;
  // The thread may be called otherwise than before.
  void (*name_changes)(ThreadBlock*) = nullptr;
  // From now on the time stamp counter may not be read, or may be again.
  void (*stamps_change)(ThreadBlock*, bool are_allowed) = nullptr;
  // A handler of the program begins, or has ended: `index` is that of what it interrupted in ThreadBlock::interrupted, or none where that is not known.
  // What was interrupted goes on, or is left for a place that the handler has chosen.
  void (*handler_begins)(ThreadBlock*, uint32_t index) = nullptr;
  void (*handler_ends)(ThreadBlock*, uint32_t index, uint64_t frame, bool goes_on) = nullptr;
  // A function that the tool has named (instrument::Named) is called: control is at its begin, however it came there. The tool may keep a
  // note. True: the tool has done what it does (Named::replace), its result is in the registers; it may not wait for anybody. False: it goes on, with the
  // arguments that are in the registers now.
  bool (*call_begins)(ThreadBlock*, OpenCall*) = nullptr;
  // Such a call has returned, and control is where it was called from, or was left without a return. Each call ends once at most: those that
  // are open when the thread ends are in its memory (rt/open_calls.h).
  void (*call_returns)(ThreadBlock*, const OpenCall*) = nullptr;
  void (*call_left)(ThreadBlock*, const OpenCall*) = nullptr;
  // The virtual clock will begin again: what was noted of it is to be as if it had been so all the time.
  void (*clock_restarts)(ThreadBlock*, Times by) = nullptr;
  // The thread's buffer is full (rt/buffer.h), and is to be empty behind this. Null: Weir empties it.
  void (*buffer_is_full)(ThreadBlock*) = nullptr;
  // For tools that ask (instrument::Services::system_calls): a call begins, with what it will do, and where it may write; it is over, with what it has
  // done. The effects of each come between its two hooks. Before a frame (ToldCall::Frame) is told no other hook is called.
  void (*told_call_begins)(ThreadBlock*, const ToldCall&) = nullptr;
  void (*told_call_effect)(ThreadBlock*, const ToldCall&, const Effect&) = nullptr;
  void (*told_call_ends)(ThreadBlock*, const ToldCall&) = nullptr;
};
constexpr uint32_t not_interrupted = interrupted_count;

template <class... Parameters, class... Arguments>
[[gnu::always_inline]] inline void call_hook(ThreadBlock* tb, void (*Hooks::*hook)(ThreadBlock*, Parameters...),
                                             Arguments... arguments) {
  if (tb->hooks && tb->hooks->*hook) (tb->hooks->*hook)(tb, arguments...);
}

// The program's registers in call_begins and call_returns: integer arguments by their number, from 0, and results. (Vector registers are
// those of the program, untouched.)
inline uint64_t& result(ThreadBlock* tb) { return tb->regs.gpr[0]; }
inline uint64_t& second_result(ThreadBlock* tb) { return tb->regs.gpr[2]; }
inline uint64_t& argument(ThreadBlock* tb, uint32_t n) {
  constexpr uint8_t registers[] = {7, 6, 2, 1, 8, 9};  // rdi rsi rdx rcx r8 r9
  if (n == 3) return tb->rcx;
  if (n < 6) return tb->regs.gpr[registers[n]];
  return reinterpret_cast<uint64_t*>(tb->regs.gpr[4])[n - 5];
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
