// Liveness, solved block by block: in = gen ∪ (out − kill), out = ∪ in of the successors, from nothing upwards until
// nothing changes. All sets only grow, so it ends; the smallest solution is the right one, since all that is not known
// was put in at the edges.
#include "x86/liveness.h"

#include <bit>

namespace weir::x86 {
namespace {

// What the instruction reads, as liveness sees it: what runs behind a call, a system call or a trap may read everything.
RegSet reads_of(const Insn& insn) {
  bool runs_unknown_code = insn.kind() != Kind::Plain && insn.kind() != Kind::Jump && insn.kind() != Kind::Branch;
  return runs_unknown_code ? RegSet::all() : insn.shape->reads;
}

RegSet before(const Insn& insn, RegSet after) { return after.without(insn.shape->kills) | reads_of(insn); }

// A block's transfer function.
struct Effect {
  RegSet gen, kill;
};

Effect effect_of(const Function& f, const Block& b) {
  Effect e;
  std::span<const Insn> insns = f.insns_of(b);
  for (size_t i = insns.size(); i-- > 0;) {
    e.gen = before(insns[i], e.gen);
    e.kill = e.kill | insns[i].shape->kills;
  }
  return e;
}

struct Successors {
  BlockId blocks[2] = {no_block, no_block};
  bool leaves = false;   // control can also go where nothing is known
};

Successors successors_of(const Block& b) {
  switch (b.ends) {
    case BlockEnd::FallThrough:
    case BlockEnd::Call:
    case BlockEnd::Syscall: return {{b.fallthrough, no_block}, b.fallthrough == no_block};
    case BlockEnd::Jump: return {{b.taken, no_block}, b.taken == no_block};
    case BlockEnd::Branch: return {{b.fallthrough, b.taken}, b.fallthrough == no_block || b.taken == no_block};
    case BlockEnd::IndirectJump:
    case BlockEnd::Return:
    case BlockEnd::Trap:
    case BlockEnd::Undecodable: break;
  }
  return {{}, true};
}

// The predecessors of all blocks, in one array: those of block b are from[begin[b], begin[b + 1]).
struct Predecessors {
  std::vector<uint32_t> begin;
  std::vector<BlockId> from;
};

Predecessors predecessors_of(const Function& f) {
  Predecessors p;
  p.begin.resize(f.blocks.size() + 2);
  for (const Block& b : f.blocks)
    for (BlockId to : successors_of(b).blocks)
      if (to != no_block) ++p.begin[to + 2];
  for (size_t i = 2; i < p.begin.size(); ++i) p.begin[i] += p.begin[i - 1];
  p.from.resize(p.begin.back());
  // begin[to + 1] moves from the begin of to's part to its end, which is the begin of the next.
  for (BlockId id = 0; id < f.blocks.size(); ++id)
    for (BlockId to : successors_of(f.blocks[id]).blocks)
      if (to != no_block) p.from[p.begin[to + 1]++] = id;
  return p;
}

// Blocks to be looked at again, last first: most edges go forward, so most successors are done before their predecessors.
class Worklist {
 public:
  explicit Worklist(size_t count) : words_((count + 63) / 64), next_(words_.size()) {
    for (size_t i = 0; i < count; ++i) add(static_cast<BlockId>(i));
  }
  void add(BlockId b) {
    words_[b / 64] |= uint64_t{1} << b % 64;
    if (b / 64 >= next_) behind_ = true;
  }
  // no_block: none is left.
  BlockId take() {
    for (;;) {
      while (next_ > 0 && words_[next_ - 1] == 0) --next_;
      if (next_ > 0) break;
      if (!behind_) return no_block;
      behind_ = false;
      next_ = words_.size();
    }
    uint64_t& word = words_[next_ - 1];
    int bit = 63 - std::countl_zero(word);
    word &= ~(uint64_t{1} << bit);
    return static_cast<BlockId>((next_ - 1) * 64 + bit);
  }

 private:
  std::vector<uint64_t> words_;
  size_t next_;          // words from here on were passed in this sweep
  bool behind_ = false;  // one of those has a block again
};

}  // namespace

Liveness liveness(const Function& f) {
  size_t count = f.blocks.size();
  Liveness l{std::vector<RegSet>(count), std::vector<RegSet>(count)};
  std::vector<Effect> effects(count);
  for (size_t i = 0; i < count; ++i) effects[i] = effect_of(f, f.blocks[i]);
  Predecessors predecessors = predecessors_of(f);
  Worklist work(count);
  for (BlockId id = work.take(); id != no_block; id = work.take()) {
    Successors s = successors_of(f.blocks[id]);
    RegSet out = s.leaves ? RegSet::all() : RegSet{};
    for (BlockId to : s.blocks)
      if (to != no_block) out = out | l.live_in[to];
    RegSet in = out.without(effects[id].kill) | effects[id].gen;
    l.live_out[id] = out;
    if (in == l.live_in[id]) continue;
    l.live_in[id] = in;
    for (uint32_t i = predecessors.begin[id]; i < predecessors.begin[id + 1]; ++i) work.add(predecessors.from[i]);
  }
  return l;
}

std::vector<RegSet> Liveness::inside(const Function& f, BlockId block) const {
  std::span<const Insn> insns = f.insns_of(f.blocks[block]);
  std::vector<RegSet> sets(insns.size() + 1);
  sets.back() = live_out[block];
  for (size_t i = insns.size(); i-- > 0;) sets[i] = before(insns[i], sets[i + 1]);
  return sets;
}

}  // namespace weir::x86
