// Blocks: copied where nothing changes, in the order of the program, so that falling through stays falling through.

#include "instrument/lower.h"

#include <algorithm>

#include "instrument/lowering.h"
#include "instrument/operations.h"

namespace weir::instrument {

using x86::Block;
using x86::BlockEnd;
using x86::BlockId;
using x86::Insn;
using x86::no_block;

namespace {

// How long a probe can be: see probe.cc. Two spilled temporaries, stored and taken back, take 36 bytes.
uint32_t probe_bound(std::span<const Op> ops) {
  constexpr uint32_t spill_bound = 36, long_op_bound = 72;
  uint32_t bound = 0, spill = 0;
  if (std::ranges::any_of(ops, is_general)) {
    constexpr uint32_t begin_and_end = 160;
    bound = begin_and_end;
    for (const Op& op : ops) bound += operation_bound(op);
    return bound;
  }
  for (const Op& op : ops) {
    bool adds = op.kind == Op::AddCounter || op.kind == Op::AddClock;
    if (op.kind >= Op::PushFrame) bound += (op.kind == Op::PopFrame ? 10 : 5) * long_op_bound;
    if (op.kind == Op::GoTo) bound += tail_bound;
    bool is_long = op.kind == Op::Call || op.kind == Op::SkipUnless || (adds && op.value != int32_t(op.value));
    bound += is_long ? long_op_bound : probe_op_bound;
    if (!adds) spill = spill_bound;
  }
  return bound + spill;
}

bool goes_to_another_version(const Plan& plan) {
  return std::ranges::any_of(plan.insertions(), [&](const Insertion& i) {
    return std::ranges::find(plan.ops_of(i), Op::GoTo, &Op::kind) != plan.ops_of(i).end();
  });
}

}  // namespace

uint16_t registers_read(std::span<const Op> ops) {
  constexpr uint16_t arguments = 1 << x86::RDI | 1 << x86::RSI | 1 << x86::RDX | 1 << x86::RCX | 1 << x86::R8 | 1 << x86::R9;
  constexpr uint16_t results = 1 << x86::RAX | 1 << x86::RDX;
  uint16_t read = 0;
  for (const Op& op : ops) {
    if (op.kind == Op::GetRegister) read |= uint16_t(1 << op.reg);
    if (op.kind == Op::BeginCall) read |= arguments;
    if (op.kind == Op::EndCalls) read |= results;
  }
  return read;
}

// (Elsewhere than below 4 GiB an operand [rip + disp] has a target that is not 0: others need no look at their shapes, which are in no cache yet.)
uint32_t count_far_operands(const x86::Function& f, CachePc base) {
  bool may_name_0 = f.entry.value < uint64_t{1} << 32;
  auto is_far = [&](const Insn& i) { return (i.target || may_name_0) && is_out_of_reach(i, base); };
  return static_cast<uint32_t>(std::ranges::count_if(f.insns, is_far));
}

size_t size_bound(const x86::Function& f, const Plan& plan, CachePc base) {
  size_t n = 256 + special_bound * size_t{count_far_operands(f, base)};
  for (const Block& b : f.blocks) n += static_cast<size_t>(b.end - b.begin) + transfer_bound + tail_bound;
  if (f.has_special)
    for (const Insn& i : f.insns) n += i.shape->is_special() ? special_bound : 0;
  for (const Insertion& i : plan.insertions()) n += probe_bound(plan.ops_of(i)) + tail_bound;
  return n + f.jump_targets.size() * 16;
}

// Each instruction may have two, and each Op::GoTo one.
uint32_t exits_bound(const x86::Function& f, const Plan& plan) {
  size_t n = 2 * f.insns.size();
  for (const Insertion& i : plan.insertions())
    n += static_cast<size_t>(std::ranges::count(plan.ops_of(i), Op::GoTo, &Op::kind));
  return static_cast<uint32_t>(n);
}

Lowered::Scratch& scratch_of(Lowered& lowered) {
  if (!lowered.scratch) lowered.scratch = std::make_shared<Lowered::Scratch>();
  return *lowered.scratch;
}

// A register that a probe reads is live for the tool, if not for the program: probes before must keep it, and what comes
// through the table must have taken rcx back.
void lower(const Input& input, Lowered& result) {
  uint16_t read = 0;
  for (const Insertion& i : input.plan.insertions()) read |= registers_read(input.plan.ops_of(i));
  if (!read) return Lowering(input, result).run();
  x86::Liveness live = input.liveness;
  for (x86::RegSet& set : live.live_in) set.gpr |= read;
  for (x86::RegSet& set : live.live_out) set.gpr |= read;
  Lowering({input.function, live, input.plan, input.code, input.out, input.base, input.placement, input.has_clock,
            input.inline_code},
           result)
      .run();
}

Lowering::Lowering(const Input& in, Lowered& out)
    : in_(in),
      out_(out),
      f_(in.function),
      live_(in.liveness),
      placement_(in.placement),
      e_(in.out, in.base),
      scratch_(scratch_of(out)),
      body_(scratch_.body),
      bound_(scratch_.bound),
      placed_(scratch_.placed),
      edges_(scratch_.edges),
      arrivals_(scratch_.arrivals),
      fixups_(scratch_.fixups),
      tails_(scratch_.tails),
      literals_(scratch_.literals),
      cold_parts_(scratch_.cold_parts),
      inline_code_(in.inline_code),
      register_clock_(in.has_clock && clock_register_offset(in.placement.facts().processor)),
      takes_gs_(in.placement.facts().takes_gs),
      knows_distances_(in.placement.facts().knows_distances),
      has_table_(in.placement.facts().has_table),
      has_far_operands_(knows_distances_ && count_far_operands(in.function, in.base)) {
  placed_.clear(), edges_.clear(), arrivals_.clear(), fixups_.clear(), tails_.clear(), literals_.clear(), cold_parts_.clear();
  out_.size = 0;
  out_.blocks.clear();
  out_.table.clear();
  out_.exits.clear();
  out_.marks.clear();
  out_.not_supported = 0;
  placement_.begin(*this);
}

void Lowering::run() {
  body_.assign(f_.blocks.size(), ~0u);
  place_probes();
  bound_.resize(f_.blocks.size());
  uint32_t bound = 0;
  auto probe_at = placed_.begin();
  for (BlockId b = 0; b < f_.blocks.size(); b++) {
    const Block& block = f_.blocks[b];
    bound += static_cast<uint32_t>(block.end - block.begin) + (block.ends <= BlockEnd::Jump     ? 8
                                                               : block.ends == BlockEnd::Branch ? 28
                                                                                                : transfer_bound);
    for (; probe_at != placed_.end() && probe_at->insn < block.first + block.count; ++probe_at)
      bound += probe_bound(in_.plan.ops_of(*probe_at->insertion));
    if (f_.has_special || has_far_operands_)
      for (const Insn& i : f_.insns_of(block)) bound += i.shape->is_special() || must_rewrite(i) ? special_bound : 0;
    bound_[b] = bound;
  }
  emit_entry();
  for (BlockId b = 0; b < f_.blocks.size(); b++) emit_block(b);
  for (AppPc target : f_.jump_targets)
    if (BlockId b = f_.block_at(target); b != no_block && target != f_.entry) {
      if (has_table_ && is_live(b, x86::RCX)) tails_.push_back({Tail::TableEntry, 0, nullptr, target, b});
      else out_.table.push_back({target, body_[b]});
    }
  mark(Mark::Middle, f_.entry);
  for (size_t i = 0; i < tails_.size(); i++) emit_tail(Tail(tails_[i]));  // a tail may add further ones
  emit_literals();
  resolve_fixups();
  for (BlockId b = 0; b < f_.blocks.size(); b++)
    out_.blocks.push_back({f_.blocks[b].begin, body_[b], f_.blocks[b].is_entry});
  out_.size = e_.offset();
  CHECK(out_.size <= in_.out.size());
}

void Lowering::place_probes() {
  for (const Insertion& i : in_.plan.insertions()) {
    switch (i.where) {
      case Where::Before: placed_.push_back({i.index, false, &i}); break;
      case Where::After: placed_.push_back({i.index, true, &i}); break;
      case Where::Block: placed_.push_back({f_.blocks[i.index].first, false, &i}); break;
      default: edges_.push_back(&i);
    }
  }
  std::ranges::stable_sort(edges_, {}, &Insertion::index);
  // A probe of a block that only adds may stand anywhere in it: where the flags are dead, if they are not at the begin. (Unless another may leave
  // the block before that.)
  std::optional<bool> may_leave;
  for (Placed& p : placed_) {
    if (p.insertion->where != Where::Block) continue;
    BlockId b = p.insertion->index;
    if (!(live_.live_in[b].flags & 0x3f)) continue;
    if (!may_leave) may_leave = goes_to_another_version(in_.plan);
    if (*may_leave) break;
    auto ops = in_.plan.ops_of(*p.insertion);
    if (!std::all_of(ops.begin(), ops.end(),
                     [](const Op& op) { return op.kind == Op::AddCounter || op.kind == Op::AddClock; }))
      continue;
    auto inside = live_.inside(f_, b);
    for (uint32_t i = 0; i < f_.blocks[b].count; i++)
      if (!(inside[i].flags & 0x3f)) {
        p.insn = f_.blocks[b].first + i;
        break;
      }
  }
  std::stable_sort(placed_.begin(), placed_.end(), [](const Placed& a, const Placed& b) {
    return std::pair(a.insn, a.after) < std::pair(b.insn, b.after);
  });
}

// Where calls come in: through the table, then directly.
void Lowering::emit_entry() {
  BlockId b = f_.block_at(f_.entry);
  CHECK(b != no_block);
  out_.table.push_back({f_.entry, e_.offset()});
  for (const Insertion* i : edges_)
    if (i->where == Where::Arrival) arrivals_.push_back(i);
  arrive(b, f_.entry);
  out_.entry = e_.offset();
  for (const Insertion* i : edges_)
    if (i->where == Where::Entry) probe(in_.plan.ops_of(*i), live_.live_in[b], f_.entry);
  if (b != 0) jump_block(b, no_block);
}

void Lowering::emit_block(BlockId b) {
  const Block& block = f_.blocks[b];
  body_[b] = e_.offset();
  auto insns = f_.insns_of(block);
  auto bytes = in_.code(block.begin, static_cast<size_t>(block.end - block.begin));
  rax_ = -1;
  auto p =
      std::lower_bound(placed_.begin(), placed_.end(), block.first, [](const Placed& x, uint32_t i) { return x.insn < i; });
  x86::RegSet read;  // by probes of this block
  for (auto q = p; q != placed_.end() && q->insn < block.first + block.count; ++q)
    read.gpr |= registers_read(in_.plan.ops_of(*q->insertion));
  std::vector<x86::RegSet> inside;
  auto live_before = [&](uint32_t i) {
    if (i == 0) return live_.live_in[b];
    if (inside.empty()) inside = live_.inside(f_, b);
    return inside[i] | read;
  };
  bool ends_with_transfer = block.ends != BlockEnd::FallThrough;
  uint32_t plain = block.count - (ends_with_transfer ? 1 : 0);
  uint32_t i = 0;
  auto probes_before = [&](uint32_t at) {
    insn_ = &insns[at];
    for (; p != placed_.end() && p->insn == block.first + at && !p->after; ++p)
      probe(in_.plan.ops_of(*p->insertion), live_before(at), insns[at].pc);
    insn_ = nullptr;
  };
  while (i < plain) {
    probes_before(i);
    bool lends = register_clock_ && uses_clock_register(insns[i]);
    bool copies_all = !f_.has_special && !has_far_operands_ && (p == placed_.end() || p->insn >= block.first + plain);
    uint32_t n = copies_all ? plain : i + 1;
    while (n < plain && !must_rewrite(insns[n - 1]) && !must_rewrite(insns[n]) && !insns[n].shape->sets_flags() &&
           (lends || !register_clock_ || !uses_clock_register(insns[n])) &&
           !(p != placed_.end() && p->insn <= block.first + n - (p->after ? 1 : 0)))
      n++;
    while (lends && !uses_clock_register(insns[n - 1])) n--;
    auto from = static_cast<size_t>(insns[i].pc - block.begin), to = static_cast<size_t>(insns[n - 1].next() - block.begin);
    bool wants_rax = block.ends == BlockEnd::Syscall;
    if (insns[i].shape->sets_flags() && placement_.facts().tells_steps) {
      mark(Mark::Exact, insns[i].pc);
      e_.mov32(thread(offsetof(rt::ThreadBlock, flags_pc)), static_cast<uint32_t>(insns[i].next().value));
    }
    if (must_rewrite(insns[i])) rewrite_operand(insns[i], bytes.subspan(from, to - from)), rax_ = -1;
    else if (lends) lend_clock_register(insns.subspan(i, n - i), bytes.subspan(from, to - from), wants_rax);
    else mark(Mark::Run, insns[i].pc), copy(insns.subspan(i, n - i), bytes.subspan(from, to - from), wants_rax);
    for (; p != placed_.end() && p->insn == block.first + n - 1 && p->after; ++p)
      probe(in_.plan.ops_of(*p->insertion), live_before(n), insns[n - 1].next());
    i = n;
  }
  if (ends_with_transfer) {
    probes_before(plain);
    auto from = static_cast<size_t>(insns[plain].pc - block.begin);
    emit_block_end(b, insns[plain], bytes.subspan(from));
  } else {
    fall_through(b, block.end);
  }
}

// Instructions that fall through, copied as they are; [rip + disp32] gets the distance from here.
void Lowering::copy(std::span<const Insn> insns, std::span<const std::byte> bytes, bool wants_rax) {
  uint32_t at = e_.offset();
  e_.copy(bytes);
  int64_t moved = insns.front().pc - AppPc{e_.pc_at(at).value};
  bool may_name_0 = f_.entry.value < uint64_t{1} << 32;  // [rip + disp32] has a target; elsewhere it is not 0
  for (const Insn& i : insns) {
    if (!i.target && !wants_rax && !may_name_0) continue;  // (without a look at its shape, which is in no cache yet)
    const x86::Shape& s = *i.shape;
    auto offset = static_cast<uint32_t>(i.pc - insns.front().pc);
    if (s.rip_relative) {
      uint32_t displacement = at + offset + s.disp_offset;
      if (knows_distances_) e_.set_displacement(displacement, i.target - i.next() + moved);
      else placement_.names(*this, displacement, at + offset + s.length, i.target);
    }
    if (wants_rax && s.writes.gpr & 1) {  // the number of a system call is usually set just before it
      auto b = [&](size_t k) { return static_cast<uint8_t>(bytes[offset + k]); };
      rax_ = -1;
      if (s.length == 5 && b(0) == 0xb8) memcpy(&rax_, &bytes[offset + 1], 4), rax_ &= 0xffffffff;
      else if (s.length == 7 && b(0) == 0x48 && b(1) == 0xc7 && b(2) == 0xc0)
        memcpy(&rax_, &bytes[offset + 3], 4), rax_ &= 0xffffffff;
      else if (s.length == 2 && (b(0) == 0x31 || b(0) == 0x33) && b(1) == 0xc0) rax_ = 0;
    }
  }
}

void Lowering::emit_block_end(BlockId b, const Insn& last, std::span<const std::byte> bytes) {
  const Block& block = f_.blocks[b];
  switch (block.ends) {
    case BlockEnd::FallThrough: break;
    case BlockEnd::Jump:
      for (const Insertion* i : std::ranges::equal_range(edges_, b, {}, &Insertion::index))
        if (i->where == Where::Taken)
          probe(in_.plan.ops_of(*i), block.taken == no_block ? x86::RegSet::all() : live_.live_in[block.taken], last.pc);
      mark(Mark::Exact, last.pc);
      if (block.taken != no_block) jump_block(block.taken, b);
      else jump_out(last.target);
      break;
    case BlockEnd::Branch: branch(b, last, bytes); break;
    case BlockEnd::Call:
      if (last.kind() == x86::Kind::Call) placement_.call(*this, last);
      else placement_.indirect_call(*this, last, bytes);
      return_site(b, last.next());
      break;
    case BlockEnd::IndirectJump:
      if (last.kind() == x86::Kind::FarReturn) placement_.far_return(*this, last, bytes);
      else placement_.indirect_jump(*this, last, bytes);
      break;
    case BlockEnd::Return: placement_.return_(*this, last, bytes); break;
    case BlockEnd::Syscall: system_call(b, last); break;
    case BlockEnd::Trap:
      mark(Mark::Run, last.pc);
      e_.copy(bytes.first(last.shape->length));
      fall_through(b, block.end);
      break;
    case BlockEnd::Undecodable:
      mark(Mark::Exact, last.pc);
      out_.not_supported++;
      jump_out(last.pc);  // Weir decides when it is reached
      break;
  }
}

// Control goes on at `next`, which may stand elsewhere or outside.
void Lowering::fall_through(BlockId b, AppPc next) {
  BlockId to = f_.blocks[b].fallthrough;
  for (const Insertion* i : std::ranges::equal_range(edges_, b, {}, &Insertion::index))
    if (i->where == Where::FallThrough)
      probe(in_.plan.ops_of(*i), to == no_block ? x86::RegSet::all() : live_.live_in[to], next);
  if (to == b + 1) return;
  mark(Mark::Exact, next);
  if (to != no_block) jump_block(to, b);
  else jump_out(next);
}

void Lowering::resolve_fixups() {
  for (const Fixup& x : fixups_) {
    if (x.is_short) e_.leads_to_short(x.offset, body_[x.block]);
    else e_.leads_to(x.offset, body_[x.block]);
  }
}

}  // namespace weir::instrument
