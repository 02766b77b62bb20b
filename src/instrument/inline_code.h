// What a tool does in line, beside the operations that all tools have: with what it keeps in the frames of the parallel stack, and for operations of
// its own (Op::Own). Lowering asks for it while it emits a probe. As it stands here it is that of a tool which keeps nothing.
//
// t and u are registers that the probe may change; flags, too, unless it says otherwise.
#pragma once

#include <cstdint>

#include "instrument/tool.h"

namespace weir::instrument {

class Lowering;
struct Tail;

class InlineCode {
 public:
  virtual ~InlineCode() = default;

  // Of a frame, its head included: at most 127.
  virtual uint32_t frame_size() const { return sizeof(rt::Frame); }
  // A frame begins. Sets t to its address, which is the top of the stack; its head is written by who calls. No flags are written.
  virtual void begin_frame(Lowering& code, x86::Gpr t, x86::Gpr u) const;
  // The same of a frame whose address is in t already, without another register, where that can be.
  virtual bool can_begin_frame_at(bool /*has_register_clock*/) const { return true; }
  virtual void begin_frame_at(Lowering& /*code*/, x86::Gpr /*t*/) const {}
  // The frame below t, on top, has returned (Op::PopFrame): it is taken off, and its function has one less.
  virtual void end_frame(Lowering& code, const Op& op, x86::Gpr t, x86::Gpr u) const;
  // Sets ZF where nothing stands in the way of going on in the middle of a function (Op::ResyncFrames). False: nothing ever does.
  virtual bool compare_settled(Lowering& /*code*/) const { return false; }

  // An operation of the tool's own: which temporaries it uses, and whether flags must be kept for it. (If not, it writes none.)
  struct Needs {
    bool a, b, flags;
  };
  virtual Needs needs(const Op& /*op*/, bool /*has_register_clock*/) const { return {}; }
  virtual void own(Lowering& /*code*/, const Op& /*op*/, x86::Gpr /*t*/, x86::Gpr /*u*/) const {}

  // A part that Lowering::leads_to_cold() has put off: it ends with jump_back(), on each way.
  virtual void cold(Lowering& /*code*/, const Tail& /*tail*/) const {}
};

}  // namespace weir::instrument
