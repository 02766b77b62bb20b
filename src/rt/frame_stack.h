// The frames that the kernel builds for signals, and how one is moved to another stack.
#pragma once

#include "rt/sys.h"

namespace weir::rt {

// The kernel's struct rt_sigframe.
struct SignalFrame {
  uint64_t restorer;
  UContext uc;
  SigInfo info;
};
static_assert(sizeof(SignalFrame) == 440);

inline SigInfo* info_of(UContext* uc) { return reinterpret_cast<SigInfo*>(uc + 1); }

// The extended state of a frame: FXSAVE's, the words that the kernel has put into its reserve, and what XSAVE has behind.
struct Extended {
  uint8_t fxsave[464];
  uint32_t magic, size;  // size: of all, with a word behind
  uint64_t features;
  uint32_t state_size, padding[7];
  uint64_t in_use;
};
static_assert(offsetof(Extended, in_use) == 512);
constexpr uint32_t extended_magic = 0x46505853;

// Is `rsp` on the alternate stack, as the kernel sees it? (With SS_AUTODISARM there is none while a handler runs.)
bool is_on_altstack(const UContext* uc, uint64_t rsp);
// Where the alternate stack begins, if a frame is on it; else 0.
uint64_t altstack_of(const UContext* frame);
// The frame of a signal whose action has these flags: where it is, or, where that is the wrong stack, a copy. `info` is always behind it.
UContext* on_right_stack(UContext* uc, uint64_t flags);

}  // namespace weir::rt
