// Lifting a function: which of its bytes are instructions, and where its blocks begin and end.
//
// Instructions are decoded in *runs*: from a place that control can reach straight on, until control surely goes elsewhere
// or the run meets an instruction that is already decoded. Runs are appended to one vector, and where a branch goes or a
// run meets another is marked as the begin of a block. So a block never leaves its run: it is a slice of that vector, and
// blocks come from cutting it at the marks. Runs are taken up in the order of their addresses, as far as they are known in
// time; so the vector is mostly sorted already.
//
// A third of all instructions end a block, unpredictably: hence tables and bits rather than branches.
#include "x86/function.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "x86/decode_ahead.h"
#include "x86/jump_table.h"

namespace weir::x86 {
namespace {

constexpr uint64_t max_window = 1 << 20;
constexpr uint64_t window_before_entry = 16 << 10;
constexpr uint64_t window_behind_entry = 48 << 10;

// What is looked at: the bounds, unless they are so large that they are hardly those of one function.
AppRange window_of(AppPc entry, AppRange bounds) {
  if (bounds.size() <= max_window) return bounds;
  uint64_t before = std::min(window_before_entry, entry.value - bounds.begin.value);
  uint64_t behind = std::min(window_behind_entry, bounds.end.value - entry.value);
  return {entry + -static_cast<int64_t>(before), entry + behind};
}

// A copy of the code, since a reader may reuse its buffer; and since behind it can be some bytes more, as the fast path of
// decoding wants them.
class CodeBytes {
 public:
  static constexpr size_t slack = 32;

  void read(AppPc begin, size_t size, const ReadMemory& reader) {
    constexpr uint64_t page = 4096;
    bytes_.resize(size + slack);
    extents_.clear();
    for (size_t offset = 0; offset < size;) {
      std::span<const std::byte> piece = reader(begin + offset, size - offset);
      size_t length = std::min(piece.size(), size - offset);
      if (length == 0) {  // nothing here: perhaps on the next page
        offset += page - ((begin.value + offset) & (page - 1));
        continue;
      }
      memcpy(bytes_.data() + offset, piece.data(), length);
      if (!extents_.empty() && extents_.back().end == offset) extents_.back().end += length;
      else extents_.push_back({offset, offset + length});
      offset += length;
    }
  }

  // The readable bytes from `offset` on.
  std::span<const std::byte> from(size_t offset) const {
    for (const Extent& e : extents_)
      if (e.begin <= offset && offset < e.end) return {bytes_.data() + offset, e.end - offset};
    return {};
  }
  std::span<const std::byte> all() const { return std::span(bytes_).first(bytes_.size() - slack); }

 private:
  struct Extent {
    size_t begin, end;
  };
  std::vector<std::byte> bytes_;  // of no meaning outside the extents
  std::vector<Extent> extents_;
};

class Bitmap {
 public:
  void clear(size_t size) { words_.assign((size + 63) / 64, 0); }
  bool test(size_t i) const { return words_[i / 64] >> i % 64 & 1; }
  void set(size_t i, bool value = true) { words_[i / 64] |= uint64_t{value} << i % 64; }

  // The first one at or behind i; npos: none.
  static constexpr size_t npos = ~size_t{0};
  size_t next(size_t i) const {
    if (i / 64 >= words_.size()) return npos;
    uint64_t word = words_[i / 64] & ~uint64_t{0} << i % 64;
    for (size_t w = i / 64;;) {
      if (word) return w * 64 + std::countr_zero(word);
      if (++w == words_.size()) return npos;
      word = words_[w];
    }
  }

 private:
  std::vector<uint64_t> words_;
};

// How a block ends, and whether control can go on behind it, by the kind of its last instruction.
struct Ending {
  BlockEnd how;
  bool falls_through;
};
constexpr Ending endings[] = {
    /* Plain */ {BlockEnd::FallThrough, true},
    /* Jump */ {BlockEnd::Jump, false},
    /* Branch */ {BlockEnd::Branch, true},
    /* Call */ {BlockEnd::Call, true},
    /* JumpIndirect */ {BlockEnd::IndirectJump, false},
    /* CallIndirect */ {BlockEnd::Call, true},
    /* Return */ {BlockEnd::Return, false},
    /* Syscall */ {BlockEnd::Syscall, true},
    /* Trap */ {BlockEnd::Trap, true},
    /* FarReturn */ {BlockEnd::IndirectJump, false},
    /* Far */ {BlockEnd::Undecodable, false},
};
static_assert(std::size(endings) == static_cast<size_t>(Kind::Far) + 1);

Ending ending_of(const Insn& insn) {
  if (insn.shape->length == 0) [[unlikely]]
    return {BlockEnd::Undecodable, false};
  return endings[static_cast<size_t>(insn.kind())];
}

// What is known by offset in the window. Kept from one function to the next: most are so small that allocation would be a
// good part of the work.
struct Scratch {
  CodeBytes code;
  std::vector<Insn> found;
  // 0: no instruction begins here. Below block_bit: 1 + its index. With it: the number of the block that begins here.
  std::vector<uint32_t> insn_at;
  Bitmap begins;   // a block begins here
  Bitmap entries;  // and control can come from outside
  Bitmap ends;     // by index of the instruction: a block ends with it
};
constexpr uint32_t block_bit = 1u << 31;

class Lifter {
 public:
  Lifter(AppRange window, Scratch& scratch, const ReadMemory& data, size_t max_insns, Function& result)
      : function_(result),
        window_(window),
        size_(window.size()),
        s_(scratch),
        data_(data),
        max_insns_(std::min<size_t>(max_insns, block_bit - 2)) {
    found_.clear();
    found_.reserve(std::min<size_t>(max_insns_, size_ / 4 + 8));
    s_.insn_at.assign(size_ + 1, 0);
    s_.begins.clear(size_);
    s_.entries.clear(size_);
    s_.ends.clear(size_);
  }

  void lift() {
    enter(offset_of(function_.entry), true);
    do {
      decode_runs();
      take_jump_tables();
    } while (!all_decoded() && found_.size() < max_insns_);
    cut_blocks();
    link_blocks();
    list_jump_targets();
  }

 private:
  size_t offset_of(AppPc pc) const { return pc - window_.begin; }

  // A block begins here, outside the window excepted.
  void enter(size_t offset, bool entry) {
    if (offset >= size_) return;
    s_.begins.set(offset);
    s_.entries.set(offset, entry);
  }

  void decode_runs() {
    for (size_t begin = s_.begins.next(0); begin != Bitmap::npos; begin = s_.begins.next(begin))
      begin = s_.insn_at[begin] ? begin + 1 : decode_run(begin);
  }

  // Whether each block's first instruction is; the one before it then ends a block, in this run or at the end of another.
  bool all_decoded() {
    bool all = true;
    for (size_t begin = s_.begins.next(0); begin != Bitmap::npos; begin = s_.begins.next(begin + 1)) {
      uint32_t index = s_.insn_at[begin];
      all &= index != 0;
      if (index >= 2) s_.ends.set(index - 2);
    }
    return all;
  }

  // Returns where the run ends.
  size_t decode_run(size_t begin) {
    std::span<const std::byte> bytes = s_.code.from(begin);
    size_t offset = begin;
    while (offset < size_ && found_.size() < max_insns_) {
      if (s_.insn_at[offset] != 0) {
        enter(offset, false);
        break;
      }
      Insn& insn = found_.emplace_back();
      s_.insn_at[offset] = static_cast<uint32_t>(found_.size());
      Step step = decode_at(bytes, offset - begin, window_.begin + offset, insn);
      offset += step.length;
      function_.has_special |= step.is_special;
      bool plain = step.kind == Kind::Plain && step.length > 0;
      if (plain) [[likely]]
        continue;
      s_.ends.set(found_.size() - 1);
      if (!follow(insn)) break;
    }
    s_.ends.set(found_.size() - 1);
    return std::max(offset, begin + 1);
  }

  // As if behind `bytes` there were none.
  static Step decode_at(std::span<const std::byte> bytes, size_t offset, AppPc pc, Insn& insn) {
    size_t left = bytes.size() - std::min(offset, bytes.size());
    const std::byte* at = bytes.data() + (bytes.size() - left);
    if (left == 0) [[unlikely]]
      return decode_ahead({}, pc, insn);
    Step step = decode_ahead({at, left + CodeBytes::slack}, pc, insn);
    if (step.length > left) [[unlikely]]
      step = decode_ahead({at, left}, pc, insn);
    return step;
  }

  // Enters the blocks that control goes to from the last instruction of one. Whether one of them is right behind it.
  bool follow(const Insn& insn) {
    Kind kind = insn.kind();
    if (kind == Kind::Branch || kind == Kind::Jump) enter(offset_of(insn.target), false);
    if (kind == Kind::JumpIndirect) jumps_.push_back(found_.size() - 1);
    if (!ending_of(insn).falls_through || (kind == Kind::Trap && !comes_back(insn))) return false;
    enter(offset_of(insn.next()), kind != Kind::Branch);
    return true;
  }

  // Behind int3, int n and int1 control usually goes on, behind ud2 and hlt it does not.
  bool comes_back(const Insn& insn) const {
    auto opcode = std::to_integer<uint8_t>(s_.code.all()[offset_of(insn.pc)]);
    return opcode == 0xcc || opcode == 0xcd || opcode == 0xf1;
  }

  // Tables are read when all else is decoded: they end at the latest where the code names another address.
  void take_jump_tables() {
    if (jumps_.empty()) return;
    DecodedCode code{found_, window_.begin, s_.code.all()};
    std::vector<LeaSite> leas = find_leas(code);
    for (size_t jump : std::exchange(jumps_, {}))
      for (const JumpTable& table : find_jump_tables(code, jump, leas)) take_jump_table(table, leas);
  }

  void take_jump_table(const JumpTable& table, std::span<const LeaSite> leas) {
    if (std::find(tables_.begin(), tables_.end(), table) != tables_.end()) return;
    tables_.push_back(table);
    AppPc limit{~uint64_t{0}};
    for (const LeaSite& lea : leas)
      if (lea.address > table.begin) limit = std::min(limit, lea.address);
    for (AppPc target : read_jump_table(table, function_.bounds, limit, data_)) {
      enter(offset_of(target), true);
      function_.jump_targets.push_back(target);
    }
  }

  void cut_blocks() {
    function_.blocks.reserve(found_.size() / 3 + 4);
    size_t count = 0;
    for (size_t begin = s_.begins.next(0); begin != Bitmap::npos; begin = s_.begins.next(begin + 1)) {
      if (s_.insn_at[begin] == 0) continue;  // left out: max_insns
      size_t first = s_.insn_at[begin] - 1;
      size_t last = s_.ends.next(first);
      Block b;
      b.begin = found_[first].pc;
      b.end = found_[last].next();
      b.first = static_cast<uint32_t>(first);
      b.count = static_cast<uint32_t>(last + 1 - first);
      b.ends = ending_of(found_[last]).how;
      b.is_entry = s_.entries.test(begin);
      sorted_ &= first == count;
      count += b.count;
      function_.blocks.push_back(b);
    }
    if (sorted_) function_.insns.swap(found_);
    else put_in_order_of_blocks();
  }

  void put_in_order_of_blocks() {
    std::vector<Insn>& insns = function_.insns;
    insns.reserve(found_.size());
    for (Block& b : function_.blocks) {
      auto from = found_.begin() + b.first;
      b.first = static_cast<uint32_t>(insns.size());
      insns.insert(insns.end(), from, from + b.count);
    }
  }

  BlockId block_at(AppPc pc) const {
    uint32_t at = s_.insn_at[std::min(offset_of(pc), size_)];
    return at & block_bit ? at & ~block_bit : no_block;
  }

  void link_blocks() {
    auto& blocks = function_.blocks;
    for (size_t i = 0; i < blocks.size(); ++i)
      s_.insn_at[offset_of(blocks[i].begin)] = block_bit | static_cast<uint32_t>(i);
    for (Block& b : blocks) {
      const Insn& last = function_.insns[b.first + b.count - 1];
      bool falls = ending_of(last).falls_through;
      if (b.ends == BlockEnd::Trap) falls = comes_back(last);
      bool branches = b.ends == BlockEnd::Jump || b.ends == BlockEnd::Branch;
      b.fallthrough = block_at(falls ? b.end : window_.end);
      b.taken = block_at(branches ? last.target : window_.end);
    }
  }

  void list_jump_targets() {
    std::vector<AppPc>& targets = function_.jump_targets;
    std::sort(targets.begin(), targets.end());
    targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
    std::erase_if(targets, [&](AppPc pc) { return block_at(pc) == no_block; });
  }

  Function& function_;
  AppRange window_;
  size_t size_;
  Scratch& s_;
  const ReadMemory& data_;
  size_t max_insns_;
  std::vector<Insn>& found_ = s_.found;
  bool sorted_ = true;             // found_ has the order of the blocks
  std::vector<size_t> jumps_;      // indirect jumps whose tables are to be looked for: indices in found_
  std::vector<JumpTable> tables_;  // read already
};

}  // namespace

BlockId Function::block_at(AppPc begin) const {
  auto at = std::lower_bound(blocks.begin(), blocks.end(), begin, [](const Block& b, AppPc pc) { return b.begin < pc; });
  return at != blocks.end() && at->begin == begin ? static_cast<BlockId>(at - blocks.begin()) : no_block;
}

Function lift(AppPc entry, AppRange bounds, const ReadMemory& code, const ReadMemory& data, const LiftOptions& options) {
  Function result;
  lift(entry, bounds, code, data, options, result);
  return result;
}

void lift(AppPc entry, AppRange bounds, const ReadMemory& code, const ReadMemory& data, const LiftOptions& options,
          Function& result) {
  result.entry = entry;
  result.bounds = bounds;
  result.insns.clear();
  result.blocks.clear();
  result.jump_targets.clear();
  result.has_special = false;
  if (bounds.end <= bounds.begin || !bounds.contains(entry)) return;
  static Scratch scratch;
  AppRange window = window_of(entry, bounds);
  // An instruction that begins in the window may end behind it, if not behind the bounds.
  scratch.code.read(window.begin, window.size() + std::min<uint64_t>(15, bounds.end - window.end), code);
  Lifter(window, scratch, data, options.max_insns, result).lift();
}

}  // namespace weir::x86
