// The frames that the kernel builds for signals: what is in them, and how one is moved to another stack.
#pragma once

#include "rt/runtime.h"

namespace weir::rt {

void registers_to_frame(const Registers& r, UContext* uc);
void registers_from_frame(const UContext* uc, Registers& r);
uint64_t* frame_register(UContext* uc, unsigned n);

// Is `rsp` on the alternate stack, as the kernel sees it? (With SS_AUTODISARM there is none while a handler runs.)
bool is_on_altstack(const UContext* uc, uint64_t rsp);
// The frame of a signal whose action has these flags: where it is, or, where that is the wrong stack, a copy. `info` is always behind it.
UContext* on_right_stack(UContext* uc, uint64_t flags);
inline SigInfo* info_of(UContext* uc);

// A handler begins with all vector registers zero. The frame gets the program's zmm31, the clock goes on; and back.
void take_clock(ThreadBlock* tb, UContext* uc, bool is_away);
void return_clock(ThreadBlock* tb, UContext* uc);

// The kernel's struct rt_sigframe.
struct SignalFrame {
  uint64_t restorer;
  UContext uc;
  SigInfo info;
};
static_assert(sizeof(SignalFrame) == 440);

inline SigInfo* info_of(UContext* uc) { return reinterpret_cast<SigInfo*>(uc + 1); }

}  // namespace weir::rt
