// Threads whose system calls are dispatched to a handler of their own (PR_SET_SYSCALL_USER_DISPATCH): all but those from one range of addresses, while
// a byte of the program's, the selector, says so. Our handler's calls must not be, nor its way back.
//
// Where the program names no range, it is given ours. Else the selector says "allow" while our handler runs, and the way back leads over a few
// instructions (rt_blocked) that set it to "block" again behind the last system call.
#pragma once

#include "rt/sample.h"
#include "rt/sys.h"

extern "C" [[gnu::visibility("hidden")]] void rt_blocked();

namespace weir::rt {

constexpr uint64_t PR_SET_SYSCALL_USER_DISPATCH = 59;
constexpr uint8_t dispatch_allow = 0, dispatch_block = 1;

// The selector of a thread, where that says "block"; null: its calls are not dispatched. (Another thread may have had the same fs.)
inline volatile uint8_t* blocking(SampledProcess& p, uint64_t fs) {
  if (!p.dispatch_count || !fs || !p.tid_at) return nullptr;
  SampledDispatch& d = dispatch_place(p, fs);
  if (d.fs != fs || d.tid != *reinterpret_cast<const uint32_t*>(fs + p.tid_at)) return nullptr;
  auto* selector = reinterpret_cast<volatile uint8_t*>(d.selector);
  return *selector == dispatch_block ? selector : nullptr;
}

// The call that the thread is about to make.
[[gnu::cold]] inline int64_t set_dispatch(SampledProcess& p, const UContext& c, uint64_t fs, uint32_t tid) {
  constexpr uint64_t on = 1;
  uint64_t mode = c.rsi, begin = c.rdx, size = c.r10, selector = c.r8;
  SampledDispatch& d = dispatch_place(p, fs);
  bool has_range = size != 0;
  if (mode == on && !has_range && begin == 0)
    begin = sampler_base, size = reinterpret_cast<const SamplerHeader*>(sampler_base)->image_size;
  if (mode == on && has_range && !selector) d.own = dispatch_block, selector = address(&d.own);
  int64_t result = sys(static_cast<int64_t>(c.rax), c.rdi, mode, begin, size, selector);
  if (is_error(result)) return result;
  d.fs = 0;
  if (mode == on && has_range) d.tid = tid, d.selector = selector, d.fs = fs, p.dispatch_count++;
  return result;
}

// When the handler has returned, the thread goes on as before, with its calls blocked. What rt_blocked needs lies below all that is on the stack.
inline void return_blocking(UContext& c, volatile uint8_t* selector) {
  constexpr uint64_t below = 1024;
  auto* words = reinterpret_cast<uint64_t*>((address(__builtin_frame_address(0)) - below) & ~uint64_t{15});
  const uint64_t needed[] = {address(selector), c.rax, c.rip, c.cs, c.eflags, c.rsp, c.ss};
  for (uint64_t i = 0; i < sizeof needed / sizeof *needed; i++) words[i] = needed[i];
  c.rip = reinterpret_cast<uint64_t>(rt_blocked);
  c.rsp = address(words);
}

}  // namespace weir::rt
