// Where lowered code will lie, and what that means for it: how it calls, returns and leaves, how it reaches what its thread has, how
// it names an address of the program, where the doors of the runtime are, and what processor it may presume.
//
// There are two answers: the code cache (cache_placement.h), and an object file with relocations, of which tests/unit/object_placement.h
// is a test double. Plans and probes are the same for both.
#pragma once

#include <cstdint>
#include <span>

#include "base/address.h"
#include "base/processor.h"
#include "base/result.h"
#include "instrument/tool.h"
#include "x86/insn.h"

namespace weir::instrument {

class Lowering;
struct Tail;

class Placement {
 public:
  struct Facts {
    const Processor& processor;  // that the code will run on
    // What the runtime asks for that is beside the program:
    bool takes_gs = false;     // %gs is not the program's: operands with it are rewritten
    bool tells_steps = false;  // where single-steps begin is noted
    // Indirect transfers and returns go through the table: they leave rcx in its slot, and what they lead to takes it back.
    bool has_table = false;
    bool knows_distances = false;  // from the code to what it names
  };

  explicit Placement(const Facts& facts) : facts_(facts) {}
  virtual ~Placement() = default;
  const Facts& facts() const { return facts_; }

  using Bytes = std::span<const std::byte>;
  // Before a function: here it says how its thread is reached, if not with %gs (Emitter::reach_thread).
  virtual void begin(Lowering& /*code*/) {}
  // ---- Transfers: the instruction at the end of a block, in another form or as it is ----
  virtual void call(Lowering& code, const x86::Insn& insn) = 0;
  virtual void indirect_call(Lowering& code, const x86::Insn& insn, Bytes bytes) = 0;
  virtual void indirect_jump(Lowering& code, const x86::Insn& insn, Bytes bytes) = 0;
  virtual void return_(Lowering& code, const x86::Insn& insn, Bytes bytes) = 0;
  virtual void far_return(Lowering& code, const x86::Insn& insn, Bytes bytes) = 0;
  // `number`: of the call, or -1; is rcx, which the kernel sets to the address behind it, looked at?
  virtual void system_call(Lowering& code, const x86::Insn& insn, int64_t number, bool wants_rcx) = 0;
  // A direct jump or branch leaves the function: its displacement of 32 bits will stand so many bytes ahead; it stands here.
  virtual void will_lead_out(Lowering& /*code*/, uint32_t /*ahead*/) {}
  virtual void leads_out(Lowering& code, uint32_t displacement, AppPc target) = 0;
  // Op::GoTo, at an address where the program's state is exact. (Object files have one version.)
  virtual void go_to(Lowering& /*code*/, AppPc /*target*/, Version /*version*/) { CHECK(false); }
  // What the placement has put off until the end of the function.
  virtual void tail(Lowering& /*code*/, const Tail& /*tail*/) {}

  // ---- Names ----
  // A displacement that counts from the end of its instruction leads to an address of the program. (Asked where distances are not known.)
  virtual void names(Lowering& code, uint32_t displacement, uint32_t end, AppPc target) = 0;
  // To the runtime, through the door at this offset of the thread block.
  virtual void enter(Lowering& code, uint32_t door) = 0;

 private:
  Facts facts_;
};

}  // namespace weir::instrument
