// Syscall user dispatch (prctl 59): system calls from outside a range of addresses raise SIGSYS, where a byte of the program says so.
//
// The kernel does it, and looks at the program's byte; but the range that it leaves alone is the runtime's. So nothing of ours is ever
// dispatched, and every call in the cache is, whose address in the program decides then: a call that is allowed is made in the runtime
// (rt_allowed), at a place that is exact for signals. Calls that concern the engine come to it first, and are sent to the kernel if
// they are to be dispatched.

#include "rt/where.h"

namespace weir::rt {

int64_t set_dispatch(ThreadBlock* tb, const uint64_t* a) {
  constexpr uint64_t off = 0, on = 1, only_inside = 2;
  uint64_t mode = a[1], begin = a[2], size = a[3], selector = a[4];
  if (mode == on && begin && begin + size <= begin) return -EINVAL;
  if (mode == only_inside && begin + size <= begin) return -EINVAL;
  bool is_on = mode == on || mode == only_inside;
  int64_t known =
      mode == only_inside ? sys(SYS_prctl, a[0], mode, begin, size, selector) : 0;  // (kernels of today know it)
  if (known) return known;
  int64_t result = is_on ? sys(SYS_prctl, a[0], on, address(rt_begin), address(rt_end) - address(rt_begin), selector)
                         : sys(SYS_prctl, a[0], mode, begin, size, selector);
  if (result) return result;
  if (mode == only_inside) begin += size, size = -size;  // all others are left alone
  tb->dispatch = {mode != off, begin, size, selector};
  return 0;
}

bool is_allowed(const ThreadBlock* tb, uint64_t behind) { return behind - tb->dispatch.begin < tb->dispatch.size; }

bool is_dispatched(ThreadBlock* tb, uint64_t inline_pc) {
  const Dispatch& d = tb->dispatch;
  constexpr uint8_t allow = 0;
  if (!d.is_on || (d.selector && *reinterpret_cast<const volatile uint8_t*>(d.selector) == allow)) return false;
  return !is_allowed(tb, where(tb, inline_pc).app + 2);
}

}  // namespace weir::rt
