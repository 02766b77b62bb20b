// Liveness, solved block by block: in = gen ∪ (out − kill), out = ∪ in of the successors, from nothing upwards until
// nothing changes. All sets only grow, so it ends; the smallest solution is the right one, since all that is not known
// was put in at the edges.
#include "x86/liveness.h"

#include <algorithm>
#include <bit>

namespace weir::x86 {
namespace {

// A RegSet as one word: a fourth of the instructions.
using Bits = uint64_t;
Bits bits(RegSet set) { return std::bit_cast<Bits>(set); }
RegSet set_of(Bits b) { return std::bit_cast<RegSet>(b); }
constexpr Bits all = std::bit_cast<Bits>(RegSet::all());

// What runs behind the last instruction of such a block may read everything.
bool runs_unknown_code(const Block& b) {
  return b.ends != BlockEnd::FallThrough && b.ends != BlockEnd::Jump && b.ends != BlockEnd::Branch;
}

Bits before(const Insn& insn, Bits after) { return (after & ~bits(insn.shape->kills)) | bits(insn.shape->reads); }

// Two more nodes behind those of the blocks: where control goes that leaves the function, and a second successor where
// there is none.
struct Node {
  Bits gen = 0, kill = 0;
  BlockId successors[2];
};

Node node_of(const Function& f, const Block& b) {
  auto outside = static_cast<BlockId>(f.blocks.size());
  BlockId nowhere = outside + 1;
  Node n;
  std::span<const Insn> insns = f.insns_of(b);
  for (size_t i = insns.size(); i-- > 0;) {
    n.gen = before(insns[i], n.gen);
    n.kill |= bits(insns[i].shape->kills);
    if (i + 1 == insns.size() && runs_unknown_code(b)) n.gen = all;
  }
  bool goes_on = b.ends == BlockEnd::FallThrough || b.ends == BlockEnd::Branch || b.ends == BlockEnd::Call ||
                 b.ends == BlockEnd::Syscall;
  BlockId next = goes_on ? b.fallthrough : b.ends == BlockEnd::Jump ? b.taken : no_block;
  BlockId other = b.ends == BlockEnd::Branch ? b.taken : nowhere;
  n.successors[0] = next == no_block ? outside : next;
  n.successors[1] = other == no_block ? outside : other;
  return n;
}

// The predecessors of all nodes, in one array: those of node n are from[begin[n], begin[n + 1]).
struct Predecessors {
  std::vector<uint32_t> begin;
  std::vector<BlockId> from;
};

Predecessors predecessors_of(const std::vector<Node>& nodes) {
  Predecessors p;
  p.begin.resize(nodes.size() + 4);
  p.from.resize(nodes.size() * 2);
  for (const Node& n : nodes)
    for (BlockId to : n.successors) ++p.begin[to + 2];
  for (size_t i = 2; i < p.begin.size(); ++i) p.begin[i] += p.begin[i - 1];
  // begin[to + 1] moves from the begin of to's part to its end, which is the begin of the next.
  for (BlockId id = 0; id < nodes.size(); ++id)
    for (BlockId to : nodes[id].successors) p.from[p.begin[to + 1]++] = id;
  return p;
}

// Blocks to be looked at again, last first: most edges go forward, so most successors are done before their predecessors.
class Worklist {
 public:
  explicit Worklist(size_t count) : words_((count + 63) / 64, ~uint64_t{0}), next_(words_.size()) {
    if (count % 64) words_.back() = ~(~uint64_t{0} << count % 64);
  }
  void add(BlockId b) {
    words_[b / 64] |= uint64_t{1} << b % 64;
    behind_ |= b / 64 >= next_;
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
  std::vector<Node> nodes;
  nodes.reserve(count);
  for (const Block& b : f.blocks) nodes.push_back(node_of(f, b));
  Predecessors predecessors = predecessors_of(nodes);
  Liveness l{std::vector<RegSet>(count + 2), std::vector<RegSet>(count)};
  l.live_in[count] = RegSet::all();
  Worklist work(count);
  for (BlockId id = work.take(); id != no_block; id = work.take()) {
    const Node& n = nodes[id];
    Bits out = bits(l.live_in[n.successors[0]]) | bits(l.live_in[n.successors[1]]);
    RegSet in = set_of((out & ~n.kill) | n.gen);
    l.live_out[id] = set_of(out);
    if (in == l.live_in[id]) continue;
    l.live_in[id] = in;
    for (uint32_t i = predecessors.begin[id]; i < predecessors.begin[id + 1]; ++i) work.add(predecessors.from[i]);
  }
  l.live_in.resize(count);
  return l;
}

namespace {

// One register is live where a way leads to an instruction that reads it and to none before that overwrites it. Nearly always
// the first few instructions decide.
class EntryWalk {
 public:
  EntryWalk(const Function& f, Gpr reg) : f_(f), bit_(1 << reg) {}

  bool is_live_in(BlockId entry) {
    seen_.assign(1, entry);
    for (size_t i = 0; i < seen_.size(); ++i) {
      const Block& b = f_.blocks[seen_[i]];
      Fate fate = fate_in(b);
      if (fate == Fate::Read || seen_.size() > enough) return true;
      if (fate == Fate::Overwritten) continue;
      if (b.ends != BlockEnd::Jump && !go_on(b.fallthrough)) return true;
      if (b.ends != BlockEnd::FallThrough && !go_on(b.taken)) return true;
    }
    return false;
  }

 private:
  enum class Fate { Read, Overwritten, Passed };
  static constexpr size_t enough = 6;  // blocks: then it is taken for live

  Fate fate_in(const Block& b) const {
    bool unknown = runs_unknown_code(b);
    for (const Insn& insn : f_.insns_of(b).first(b.count - unknown)) {
      if (insn.shape->reads.gpr & bit_) return Fate::Read;
      if (insn.shape->kills.gpr & bit_) return Fate::Overwritten;
    }
    return unknown ? Fate::Read : Fate::Passed;
  }

  // False: control leaves the function.
  bool go_on(BlockId to) {
    if (to == no_block) return false;
    if (std::find(seen_.begin(), seen_.end(), to) == seen_.end()) seen_.push_back(to);
    return true;
  }

  const Function& f_;
  unsigned bit_;
  std::vector<BlockId> seen_;
};

}  // namespace

Liveness liveness_at_entries(const Function& f, Gpr reg) {
  Liveness l{std::vector<RegSet>(f.blocks.size(), RegSet::all()), {}};
  EntryWalk walk(f, reg);
  for (BlockId b = 0; b < f.blocks.size(); ++b)
    if (f.blocks[b].is_entry && !walk.is_live_in(b)) l.live_in[b].gpr &= ~(1 << reg);
  return l;
}

std::vector<RegSet> Liveness::inside(const Function& f, BlockId block) const {
  const Block& b = f.blocks[block];
  std::span<const Insn> insns = f.insns_of(b);
  std::vector<RegSet> sets(insns.size() + 1);
  sets.back() = live_out[block];
  for (size_t i = insns.size(); i-- > 0;) {
    bool unknown = i + 1 == insns.size() && runs_unknown_code(b);
    sets[i] = set_of(unknown ? all : before(insns[i], bits(sets[i + 1])));
  }
  return sets;
}

}  // namespace weir::x86
