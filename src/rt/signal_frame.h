// What is in the frames that the kernel builds for signals.
#pragma once

#include "rt/frame_stack.h"
#include "rt/runtime.h"

namespace weir::rt {

void registers_to_frame(const Registers& r, UContext* uc);
void registers_from_frame(const UContext* uc, Registers& r);
uint64_t* frame_register(UContext* uc, unsigned n);

// A handler begins with all vector registers zero. The frame gets the program's zmm31, the clock goes on; and back.
void take_clock(ThreadBlock* tb, UContext* uc, bool is_away);
void return_clock(ThreadBlock* tb, UContext* uc);

}  // namespace weir::rt
