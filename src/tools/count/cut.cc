// A function that control enters in its middle (a target of a jump that no table names, a landing pad) is translated again from
// there, and the same code may then be in blocks of both translations, cut at other places. In the profile no instruction is in
// two blocks: every block is cut where another one begins, and the counts of equal parts are added up.
//
// What a part costs depends on what was before it: the smaller figure is the block's, the rest is `extra`, so that the sums stay.
//
// Most functions were translated once, and need nothing of this. Here the blocks also get their order: by function and place.

#include <algorithm>
#include <utility>

#include "cost/strings.h"
#include "profile/sums.h"
#include "tools/count/assemble.h"

namespace weir::count {

namespace {

bool has_repetition(std::span<const std::byte> code, std::span<const uint8_t> lengths) {
  for (size_t at = 0, i = 0; i < lengths.size(); at += lengths[i++])
    if (auto s = cost::string_instruction(code.subspan(at, lengths[i])); s && s->repeated) return true;
  return false;
}

}  // namespace

class Assembler::Cutter {
 public:
  explicit Cutter(Assembler& a)
      : a_(a), old_(std::exchange(a.p_.blocks, {})), old_insns_(std::exchange(a.insns_, {})), parts_of_(old_.size()) {
    a_.p_.blocks.reserve(old_.size());
    a_.insns_.reserve(old_.size());
    parts_.reserve(old_.size());
  }

  void cut() {
    std::vector<uint32_t> order = by_function();
    for (size_t i = 0, end; i < order.size(); i = end) {
      for (end = i + 1; end < order.size() && old_[order[end]].function == old_[order[i]].function;) end++;
      auto blocks = std::span(order).subspan(i, end - i);
      if (are_apart(blocks)) keep(blocks);
      else cut_function(blocks);
    }
  }

  void move_counts(profile::Thread& t) const {
    std::vector<profile::BlockCount> counts;
    counts.reserve(t.blocks.size());
    for (const profile::BlockCount& c : t.blocks) {
      uint64_t extra = c.extra;
      for (const Part& part : parts_of(c.block)) {
        const profile::Block& block = a_.p_.blocks[part.block];
        counts.push_back({part.block, c.count, c.count * (part.cycles - block.cycles)});
        if (extra && has_repetition(a_.p_.code_of(block), lengths_of(part.block)))
          counts.back().extra += std::exchange(extra, 0);
      }
      if (extra && parts_of_[c.block].count) counts.back().extra += extra;  // (the code of a part may be another's)
    }
    add_up(counts, &profile::BlockCount::block,
           [](profile::BlockCount& sum, const profile::BlockCount& c) { sum.count += c.count, sum.extra += c.extra; });
    t.blocks = std::move(counts);
  }

 private:
  // What an old block has become a part of, and what this part of it cost.
  struct Part {
    uint32_t block, cycles;
  };
  struct Parts {
    uint32_t first = 0, count = 0;
  };
  // A part that has no block yet.
  struct Piece {
    uint32_t old;
    profile::Block block;
    Insns insns;
  };

  std::span<const Part> parts_of(uint32_t old) const {
    return std::span(parts_).subspan(parts_of_[old].first, parts_of_[old].count);
  }
  std::span<const uint8_t> lengths_of(uint32_t block) const {
    return std::span(a_.lengths_).subspan(a_.insns_[block].first, a_.p_.blocks[block].instructions);
  }

  // The old blocks, those of a function together, as they came.
  std::vector<uint32_t> by_function() const {
    std::vector<uint32_t> next(a_.p_.functions.size() + 1), order(old_.size());
    for (const profile::Block& b : old_) next[b.function + 1]++;
    for (size_t f = 1; f < next.size(); f++) next[f] += next[f - 1];
    for (uint32_t b = 0; b < old_.size(); b++) order[next[old_[b].function]++] = b;
    return order;
  }

  // One behind the other, as a translation leaves them.
  bool are_apart(std::span<const uint32_t> blocks) const {
    for (size_t i = 1; i < blocks.size(); i++)
      if (old_[blocks[i - 1]].offset + old_[blocks[i - 1]].size > old_[blocks[i]].offset) return false;
    return true;
  }

  uint32_t add(const profile::Block& block, Insns insns) {
    a_.p_.blocks.push_back(block);
    a_.insns_.push_back(insns);
    return static_cast<uint32_t>(a_.p_.blocks.size() - 1);
  }
  void add_part(uint32_t old, Part part) {
    if (!parts_of_[old].count++) parts_of_[old].first = static_cast<uint32_t>(parts_.size());
    parts_.push_back(part);
  }

  void keep(std::span<const uint32_t> blocks) {
    for (uint32_t b : blocks)
      if (old_[b].instructions) add_part(b, {add(old_[b], old_insns_[b]), old_[b].cycles});
  }

  // (What was rewritten may have as many bytes, and other instructions.)
  static bool is_same(const profile::Block& a, const profile::Block& b) {
    return a.size == b.size && a.instructions == b.instructions;
  }

  void cut_function(std::span<const uint32_t> blocks) {
    std::vector<uint64_t> begins;
    for (uint32_t b : blocks) begins.push_back(old_[b].offset);
    std::ranges::sort(begins);
    std::vector<Piece> pieces;
    for (uint32_t b : blocks) cut_block(b, begins, pieces);
    std::vector<uint32_t> order(pieces.size()), block_of(pieces.size());
    for (uint32_t i = 0; i < order.size(); i++) order[i] = i;
    std::ranges::stable_sort(order, {}, [&](uint32_t i) { return pieces[i].block.offset; });
    for (size_t i = 0, group = a_.p_.blocks.size(); i < order.size(); i++) {
      const Piece& piece = pieces[order[i]];
      auto& known = a_.p_.blocks;
      if (i && pieces[order[i - 1]].block.offset != piece.block.offset) group = known.size();
      size_t same = group;
      while (same < known.size() && !is_same(known[same], piece.block)) same++;
      block_of[order[i]] = static_cast<uint32_t>(same);
      if (same == known.size()) add(piece.block, piece.insns);
      else if (piece.block.cycles < known[same].cycles)
        known[same].cycles = piece.block.cycles, a_.insns_[same] = piece.insns;
    }
    for (size_t i = 0; i < pieces.size(); i++) add_part(pieces[i].old, {block_of[i], pieces[i].block.cycles});
  }

  void cut_block(uint32_t b, std::span<const uint64_t> begins, std::vector<Piece>& pieces) const {
    Piece piece{b, old_[b], old_insns_[b]};
    piece.block.size = piece.block.instructions = 0;
    for (uint32_t i = 0; i < old_[b].instructions; i++) {
      uint32_t insn = old_insns_[b].first + i;
      piece.block.size += a_.lengths_[insn];
      piece.block.instructions++;
      bool last = i + 1 == old_[b].instructions;
      if (!last && !std::ranges::binary_search(begins, piece.block.offset + piece.block.size)) continue;
      uint32_t so_far = last ? old_insns_[b].before + old_[b].cycles : a_.so_far_[insn];
      piece.block.cycles = so_far - piece.insns.before;
      pieces.push_back(piece);
      piece.block.offset += piece.block.size, piece.block.code += piece.block.size;
      piece.block.size = piece.block.instructions = 0;
      piece.insns = {insn + 1, so_far};
    }
  }

  Assembler& a_;
  std::vector<profile::Block> old_;
  std::vector<Insns> old_insns_;
  std::vector<Part> parts_;
  std::vector<Parts> parts_of_;  // by old block
};

void Assembler::cut_blocks() {
  Cutter cutter(*this);
  cutter.cut();
  for (profile::Thread& t : p_.threads) cutter.move_counts(t);
}

}  // namespace weir::count
