// A function, lifted: its instructions, its basic blocks and the edges between them.
//
// The traversal is recursive, from the entry and any further entry points that are given; it follows direct branches that
// stay inside `bounds`, falls through calls, and takes the targets of jump tables that it can read as further blocks. Code
// that only an indirect jump reaches and no table names is not part of the function: it is lifted when it is asked for.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/address.h"
#include "x86/insn.h"

namespace weir::x86 {

using BlockId = uint32_t;
constexpr BlockId no_block = ~0u;

enum class BlockEnd : uint8_t {
  FallThrough,   // the next block begins here
  Jump,          // direct, inside (successors has one) or out of the function (none)
  Branch,        // taken: `taken`, not taken: `fallthrough`; either may leave the function
  Call,          // direct or indirect; control comes back at `fallthrough` or never
  IndirectJump,  // and far returns
  Return,
  Syscall,  // control comes back at `fallthrough`
  Trap,
  Undecodable,  // the last instruction has shape->known == false and might branch, or could not be read
};

struct Block {
  AppPc begin, end;    // [begin, end)
  uint32_t first = 0;  // its instructions: insns[first, first + count)
  uint32_t count = 0;
  BlockEnd ends = BlockEnd::FallThrough;
  BlockId fallthrough = no_block;  // the block at `end`, if control can go on there and it is in the function
  BlockId taken = no_block;        // the block at the direct target, if it is in the function
  bool is_entry = false;           // control can come from outside: the entry, a return site, a target of an indirect jump
};

struct Function {
  AppPc entry;
  AppRange bounds;                  // as given
  std::vector<Insn> insns;          // block by block
  std::vector<Block> blocks;        // by address
  std::vector<AppPc> jump_targets;  // targets that jump tables name (each begins a block with is_entry)
  bool has_special = false;         // Shape::is_special() of one of its instructions

  std::span<const Insn> insns_of(const Block& b) const { return {insns.data() + b.first, b.count}; }
  BlockId block_at(AppPc begin) const;  // no_block where none begins
};

// Reads up to `size` bytes of the program's memory at `pc`: as many as are readable and executable code (for the
// jump tables: as are readable).
using ReadMemory = std::function<std::span<const std::byte>(AppPc pc, size_t size)>;

struct LiftOptions {
  size_t max_insns = 200'000;  // beyond it blocks are left out, to be lifted when asked for
};

// Overlapping instructions (a jump past a lock prefix) give overlapping blocks, each right in itself.
Function lift(AppPc entry, AppRange bounds, const ReadMemory& code, const ReadMemory& data, const LiftOptions& = {});
// The same, into a function that was lifted before: its memory is used again.
void lift(AppPc entry, AppRange bounds, const ReadMemory& code, const ReadMemory& data, const LiftOptions&,
          Function& result);

}  // namespace weir::x86
