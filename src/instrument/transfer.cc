// Transfers from block to block, and what stands at their ends. What leads out of the function is the placement's.

#include <algorithm>

#include "instrument/lowering.h"

namespace weir::instrument {

using x86::BlockId;
using x86::Insn;
using x86::no_block;

// Is a jump at the end of `from` surely within 127 bytes of the block `to`, which is not emitted yet?
bool Lowering::is_surely_near(BlockId from, BlockId to) const {
  return body_[to] == ~0u && to > from && edges_.empty() && bound_[to - 1] - bound_[from] < 92;
}

// jmp to a block of this function: two bytes where it is surely near enough.
void Lowering::jump_block(BlockId target, BlockId from) {
  if (body_[target] != ~0u) {
    int64_t distance = int64_t(body_[target]) - (e_.offset() + 2);
    if (distance >= -128) return e_.jmp_short_to(body_[target]);
  }
  bool near = from != no_block && is_surely_near(from, target);
  fixups_.push_back({near ? e_.jmp_short() : e_.jmp(), target, near});
}

void Lowering::branch(BlockId b, const Insn& insn, std::span<const std::byte> bytes) {
  const x86::Block& block = f_.blocks[b];
  const Insertion* taken_probe = nullptr;
  for (const Insertion* i : std::ranges::equal_range(edges_, b, {}, &Insertion::index))
    if (i->where == Where::Taken) taken_probe = i;
  if (block.taken == no_block && !taken_probe) {
    mark(Mark::Exact, insn.pc);
    placement_.will_lead_out(*this, insn.shape->short_only ? insn.shape->length + 3u : 2);
  }
  mark(insn.shape->short_only ? Mark::Exact : Mark::Run, insn.pc);
  uint32_t displacement;
  if (insn.shape->short_only) {
    // jrcxz L1; jmp short L2; L1: jmp target; L2:
    e_.copy(bytes.first(insn.shape->length));
    uint32_t taken = e_.offset() - 1, behind = e_.jmp_short();
    e_.comes_here_short(taken);
    mark(Mark::Exact, insn.target);
    displacement = e_.jmp();
    e_.comes_here_short(behind);
  } else {
    BlockId t = block.taken;
    if (t != no_block && !taken_probe) {
      int64_t back = body_[t] == ~0u ? 1 : int64_t(body_[t]) - (e_.offset() + 2);
      bool near = back <= 0 ? back >= -128 : is_surely_near(b, t);
      if (near) {
        fixups_.push_back({e_.jcc_short(insn.shape->condition), t, true});
        return fall_through(b, block.end);
      }
    }
    displacement = e_.jcc(insn.shape->condition);
  }
  if (taken_probe) tails_.push_back({Tail::Edge, displacement, &insn, insn.target, b});
  else if (block.taken != no_block) fixups_.push_back({displacement, block.taken, false});
  else placement_.leads_out(*this, displacement, insn.target);
  fall_through(b, block.end);
}

// The place that a call comes back to.
void Lowering::return_site(BlockId b, AppPc address) {
  BlockId to = f_.blocks[b].fallthrough;
  if (to == no_block) return;  // it does not come back, as far as is known; if it does, the site is translated then
  if (has_table_) out_.table.push_back({address, e_.offset(), true});
  for (const Insertion* i : std::ranges::equal_range(edges_, b, {}, &Insertion::index))
    if (i->where == Where::FallThrough) arrivals_.push_back(i);
  for (const Insertion* i : std::ranges::equal_range(edges_, to, {}, &Insertion::index))
    if (i->where == Where::ReturnSite) arrivals_.push_back(i);
  arrive(to, address);
  if (to != b + 1) {
    mark(Mark::Exact, address);
    jump_block(to, b);
  }
}

void Lowering::system_call(BlockId b, const Insn& insn) {
  BlockId to = f_.blocks[b].fallthrough;
  bool wants_rcx = to == no_block || is_live(to, x86::RCX);
  placement_.system_call(*this, insn, rax_, wants_rcx);
  fall_through(b, insn.next());
}

void Lowering::jump_out(AppPc target) {
  placement_.will_lead_out(*this, 1);
  placement_.leads_out(*this, e_.jmp(), target);
}

void Lowering::emit_tail(const Tail& t) {
  if (t.from) e_.comes_here(t.from);
  switch (t.kind) {
    case Tail::CallThunk:
    case Tail::IndirectCallThunk:
    case Tail::IndirectMiss:
    case Tail::ReturnMiss:
    case Tail::LinkStub:
    case Tail::Return: placement_.tail(*this, t); break;
    case Tail::TableEntry:
      out_.table.push_back({t.target, e_.offset()});
      mark(Mark::Exact, t.target, rt::RestoreRcx, e_.offset() + restore_size);
      e_.mov(x86::RCX, thread(gs_rcx));
      jump_block(t.number, no_block);
      break;
    case Tail::Routine:
    case Tail::Arrival:
    case Tail::Own: emit_frame_tail(t); break;
    case Tail::Cold: return emit_cold_part(t);
    case Tail::Edge: {
      const x86::Block& block = f_.blocks[t.number];
      for (const Insertion* i : std::ranges::equal_range(edges_, t.number, {}, &Insertion::index))
        if (i->where == Where::Taken)
          probe(in_.plan.ops_of(*i), block.taken == no_block ? x86::RegSet::all() : live_.live_in[block.taken], t.target);
      mark(Mark::Exact, t.target);
      if (block.taken != no_block) jump_block(block.taken, no_block);
      else jump_out(t.target);
      break;
    }
  }
}

}  // namespace weir::instrument
