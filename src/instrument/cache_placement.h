// Code in the cache. Direct transfers are linked: they lead to their target, or, until that is translated, to a stub that asks for it.
// Calls go through a thunk that puts the program's return address on the stack; returns and indirect transfers go through the table. What
// a thread has is reached through %gs, the doors of the runtime among it.
#pragma once

#include <functional>

#include "instrument/lower.h"
#include "instrument/placement.h"

namespace weir::instrument {

class CachePlacement : public Placement {
 public:
  // Where the table is in the target; the number of the function's first exit; where a direct target is that is translated already, or 0:
  // all of the version that the code is of.
  CachePlacement(uint64_t table, uint32_t first_exit, std::function<CachePc(AppPc)> find, Version version = 0,
                 const Processor& processor = weir::processor())
      : Placement(
            {.processor = processor, .takes_gs = true, .tells_steps = true, .has_table = true, .knows_distances = true}),
        table_(table),
        first_exit_(first_exit),
        find_(std::move(find)),
        version_(version) {}

  void call(Lowering& code, const x86::Insn& insn) override;
  void indirect_call(Lowering& code, const x86::Insn& insn, Bytes bytes) override;
  void indirect_jump(Lowering& code, const x86::Insn& insn, Bytes bytes) override;
  void return_(Lowering& code, const x86::Insn& insn, Bytes bytes) override;
  void far_return(Lowering& code, const x86::Insn& insn, Bytes bytes) override;
  void system_call(Lowering& code, const x86::Insn& insn, int64_t number, bool wants_rcx) override;
  void will_lead_out(Lowering& code, uint32_t ahead) override;
  void leads_out(Lowering& code, uint32_t displacement, AppPc target) override;
  void go_to(Lowering& code, AppPc target, Version version) override;
  void tail(Lowering& code, const Tail& tail) override;
  void names(Lowering& code, uint32_t displacement, uint32_t end, AppPc target) override;
  void enter(Lowering& code, uint32_t door) override;

 private:
  void load_target(Lowering& code, const x86::Insn& insn, Bytes bytes, bool wide) const;
  void save_rcx(Lowering& code, const x86::Insn& insn) const;
  void look_up(Lowering& code) const;
  void return_from(Lowering& code, AppPc pc, uint16_t pop);
  uint32_t add_exit(Lowering& code, Exit exit) const;
  void leave(Lowering& code, uint32_t exit, uint32_t door);
  void miss(Lowering& code, uint32_t exit);
  CachePc known(Lowering& code, AppPc target) const;

  const uint64_t table_;
  const uint32_t first_exit_;
  const std::function<CachePc(AppPc)> find_;
  const Version version_;
};

}  // namespace weir::instrument
